%% Stores the records of delayed messages that reach an exchange without passing an interceptor:
%% through another exchange, as dead letters, over AMQP 1.0 or MQTT. One process for each virtual
%% host publishes them on a channel of its own.
-module(rabbit_millrace_handover).
-behaviour(gen_server).
-include_lib("amqp_client/include/amqp_client.hrl").

-export([store/2, store_all/2, store_later/2, start_link/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(TIMEOUT, 30000).
-define(RETRY_AFTER, 1000).

-record(state, {connection, channel, sink, waiting = #{}}).

%% Stores a record, and waits for the broker's confirm. Returns a queue that accepts and drops the
%% message itself: a message that is routed nowhere would count as not delivered.
store(VHost, Record) ->
    try gen_server:call(rabbit_millrace_handovers:server(VHost), {store, Record}, ?TIMEOUT)
    catch _:_ -> {error, "the delayed message could not be stored"}
    end.

%% Stores records at the same time, and returns an answer for each, as store/2 does.
store_all(VHost, Records) ->
    Server = rabbit_millrace_handovers:server(VHost),
    Requests = [gen_server:send_request(Server, {store, R}) || R <- Records],
    [case gen_server:receive_response(Request, ?TIMEOUT) of
         {reply, Answer} -> Answer;
         Fault -> {error, Fault}
     end || Request <- Requests].

%% Stores a record unless the node stops. Returns a queue that does not exist, because the alternate
%% exchange would get a message without a destination.
store_later(VHost, Record) ->
    try gen_server:cast(rabbit_millrace_handovers:server(VHost), {store, Record}) of
        ok -> {ok, rabbit_misc:r(VHost, queue, <<"jobs.delayed">>)}
    catch _:_ -> {error, "the delayed message could not be stored"}
    end.

start_link(VHost) -> gen_server:start_link(?MODULE, VHost, []).

init(VHost) ->
    process_flag(trap_exit, true),
    {ok, Connection} = amqp_connection:start(#amqp_params_direct{virtual_host = VHost}, <<"Millrace: delayed messages">>),
    monitor(process, Connection),
    {ok, Channel} = amqp_connection:open_channel(Connection),
    monitor(process, Channel),
    #'confirm.select_ok'{} = amqp_channel:call(Channel, #'confirm.select'{}),
    ok = amqp_channel:register_confirm_handler(Channel, self()),
    #'queue.declare_ok'{queue = Sink} = amqp_channel:call(Channel, #'queue.declare'{exclusive = true, arguments = sink()}),
    {ok, #state{connection = Connection, channel = Channel, sink = rabbit_misc:r(VHost, queue, Sink)}}.

%% A queue that keeps nothing, and whose messages no policy leads to a dead-letter exchange.
sink() ->
    [{<<"x-queue-type">>, longstr, <<"classic">>}, {<<"x-max-length">>, long, 0}, {<<"x-overflow">>, longstr, <<"drop-head">>},
     {<<"x-dead-letter-exchange">>, longstr, <<>>}, {<<"x-dead-letter-routing-key">>, longstr, <<"jobs.delayed">>}].

handle_call({store, Record}, From, State) -> {noreply, publish(Record, From, State)}.

handle_cast({store, Record}, State) -> {noreply, publish(Record, no_caller, State)}.

handle_info(#'basic.ack'{delivery_tag = Tag, multiple = Multiple}, State) ->
    {noreply, answer(Tag, Multiple, {ok, State#state.sink}, State)};
handle_info(#'basic.nack'{delivery_tag = Tag, multiple = Multiple}, State) ->
    {noreply, answer(Tag, Multiple, {error, "the broker could not store the delayed message"}, State)};
handle_info({again, Record}, State) -> {noreply, publish(Record, no_caller, State)};
handle_info({'DOWN', _, process, _, Reason}, State) -> {stop, {shutdown, Reason}, State};
handle_info(_Message, State) -> {noreply, State}.

terminate(_Reason, #state{connection = Connection}) -> catch amqp_connection:close(Connection).

publish(#content{properties = Properties, payload_fragments_rev = [Payload]} = Record, From,
        #state{channel = Channel, waiting = Waiting} = State) ->
    Tag = amqp_channel:next_publish_seqno(Channel),
    ok = amqp_channel:cast(Channel, rabbit_millrace_record:publish_method(), #amqp_msg{props = Properties, payload = Payload}),
    State#state{waiting = Waiting#{Tag => {From, Record}}}.

answer(Tag, Multiple, Answer, #state{waiting = Waiting} = State) ->
    Tags = case Multiple of
        true -> [T || T <- maps:keys(Waiting), T =< Tag];
        false -> [Tag]
    end,
    maps:foreach(fun(_, {From, Record}) -> answer(From, Record, Answer) end, maps:with(Tags, Waiting)),
    State#state{waiting = maps:without(Tags, Waiting)}.

answer(no_caller, _Record, {ok, _}) -> ok;
answer(no_caller, Record, {error, _}) -> erlang:send_after(?RETRY_AFTER, self(), {again, Record});
answer(From, _Record, Answer) -> gen_server:reply(From, Answer).
