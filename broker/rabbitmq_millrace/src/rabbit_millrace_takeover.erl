%% Takes over the messages that wait in the tables of the archived rabbitmq_delayed_message_exchange
%% on this node. Each is stored as a record, and then deleted there: a crash in between repeats
%% messages, and loses none.
-module(rabbit_millrace_takeover).
-behaviour(gen_server).
-include_lib("kernel/include/logger.hrl").
-include_lib("rabbit_common/include/rabbit.hrl").

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(SERVER, rabbit_delayed_message).
-define(SUPERVISOR, rabbit_delayed_message_sup).
-define(LOOK_EVERY, 5000).
-define(RETRY_AFTER, 30000).
-define(BATCH, 200).

%% What the archived plugin keeps: since RabbitMQ 3.13, delivery is a message container. The index
%% has the same keys, in the order of their time.
-record(delay_key, {timestamp, exchange}).
-record(delay_entry, {delay_key, delivery, ref}).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

init([]) ->
    self() ! look,
    {ok, none}.

handle_call(_Request, _From, State) -> {reply, {error, unknown}, State}.

handle_cast(_Request, State) -> {noreply, State}.

%% The archived plugin may be enabled later too.
handle_info(look, State) ->
    {Table, Index} = Tables = tables(),
    Counts = case exist(Tables) andalso ready() of
        true ->
            stop_server(),
            move(Table, Index, mnesia:dirty_first(Index), {0, 0});
        false -> {0, 0}
    end,
    erlang:send_after(report(Counts), self(), look),
    {noreply, State};
handle_info(_Message, State) -> {noreply, State}.

tables() ->
    Table = atom_to_list(?SERVER) ++ atom_to_list(node()),
    {list_to_atom(Table), list_to_atom(Table ++ "_index")}.

exist({Table, Index}) ->
    mnesia:system_info(is_running) =:= yes andalso [Table, Index] -- mnesia:system_info(tables) =:= []
        andalso mnesia:wait_for_tables([Table, Index], 0) =:= ok.

%% Until each virtual host is served, the archived plugin continues with the messages it has.
ready() -> rabbit_millrace_exchanges:unserved() =:= [].

%% Its supervisor does not start it again.
stop_server() ->
    case whereis(?SERVER) of
        undefined -> ok;
        _ ->
            ?LOG_NOTICE("Millrace takes over the delayed messages of rabbitmq_delayed_message_exchange"),
            supervisor:terminate_child(?SUPERVISOR, ?SERVER)
    end.

%% Returns the time until the next look.
report({0, 0}) -> ?LOOK_EVERY;
report({Moved, Left}) ->
    ?LOG_NOTICE("Millrace has taken over ~b delayed messages of rabbitmq_delayed_message_exchange on this node; ~b are left",
                [Moved, Left]),
    case Left of 0 -> ?LOOK_EVERY; _ -> ?RETRY_AFTER end.

%% Moves all messages from a key of the index on.
move(_Table, _Index, '$end_of_table', Counts) -> Counts;
move(Table, Index, First, {Moved, Left}) ->
    Keys = keys(Index, First, ?BATCH),
    Entries = [E || K <- Keys, E <- mnesia:dirty_read(Table, K)],
    Stored = lists:append([store(VHost, Es) || {VHost, Es} <- maps:to_list(by_vhost(Entries))]),
    [ok = mnesia:dirty_delete_object(Table, E) || E <- Stored],
    [ok = mnesia:dirty_delete(Index, K) || K <- Keys, mnesia:dirty_read(Table, K) =:= []],
    Counts = {Moved + length(Stored), Left + length(Entries) - length(Stored)},
    move(Table, Index, mnesia:dirty_next(Index, lists:last(Keys)), Counts).

keys(_Index, '$end_of_table', _Count) -> [];
keys(_Index, _Key, 0) -> [];
keys(Index, Key, Count) -> [Key | keys(Index, mnesia:dirty_next(Index, Key), Count - 1)].

by_vhost(Entries) ->
    lists:foldr(fun(#delay_entry{delay_key = Key} = E, All) ->
                        #delay_key{exchange = #exchange{name = #resource{virtual_host = VHost}}} = Key,
                        maps:update_with(VHost, fun(Es) -> [E | Es] end, [E], All)
                end, #{}, Entries).

%% Returns the entries that are stored, or were deleted with their virtual host.
store(VHost, Entries) ->
    case {rabbit_vhost:exists(VHost), rabbit_amqqueue:exists(rabbit_millrace_record:stream(VHost))} of
        {true, true} ->
            {Good, Records} = lists:unzip([{E, R} || E <- Entries, {ok, R} <- [record(E)]]),
            [E || {E, {ok, _}} <- lists:zip(Good, rabbit_millrace_handover:store_all(VHost, Records))];
        {true, false} -> [];
        {false, _} -> Entries
    end.

record(#delay_entry{delay_key = #delay_key{timestamp = Due, exchange = #exchange{name = Name}}, delivery = Message}) ->
    {Key, Content} = message(Message),
    Delay = max(1, Due - os:system_time(millisecond)),
    case rabbit_millrace_record:new(Name#resource.name, Key, Content, Delay) of
        {ok, _Jid, Record} -> {ok, Record};
        {error, Text} ->
            ?LOG_ERROR("Millrace cannot take over a delayed message of ~ts: ~ts", [rabbit_misc:rs(Name), Text]),
            error
    end.

message(#delivery{message = #basic_message{routing_keys = [Key | _], content = Content}}) ->
    {Key, rabbit_binary_parser:ensure_content_decoded(Content)};
message(Message) -> {hd(mc:routing_keys(Message)), mc:protocol_state(mc:convert(mc_amqpl, Message))}.
