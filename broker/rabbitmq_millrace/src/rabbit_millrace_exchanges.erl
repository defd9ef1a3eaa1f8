%% Keeps the delayed exchanges of this node working: it restores what RabbitMQ cannot know before
%% the plugin runs, and what another plugin takes away.
-module(rabbit_millrace_exchanges).
-behaviour(gen_server).
-include_lib("kernel/include/logger.hrl").
-include_lib("rabbit_common/include/rabbit.hrl").

-export([start_link/0, exist/1, unserved/0, advice/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(TYPE, 'x-delayed-message').
-define(LOOK_EVERY, 250).
-define(CHECK_EVERY, 10000).

%% A sidecar may take as long to create its streams.
-define(WARN_AFTER, 20000).
-define(WARN_AGAIN_AFTER, 300000).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Reports whether a virtual host has delayed exchanges.
exist(VHost) -> exchanges(VHost) =/= [].

%% The virtual hosts that have delayed exchanges, and no stream for delayed messages.
unserved() ->
    [V || V <- rabbit_vhost:list_names(), not rabbit_amqqueue:exists(rabbit_millrace_record:stream(V)), exist(V)].

init([]) ->
    rabbit_millrace_topic:forget(),
    _ = rabbit_millrace_topic:needed() orelse [restore(X) || X <- exchanges()],
    self() ! look,
    self() ! check,
    {ok, #{}}.

handle_call(_Request, _From, State) -> {reply, {error, unknown}, State}.

handle_cast(_Request, State) -> {noreply, State}.

handle_info(look, State) ->
    register_type(),
    erlang:send_after(?LOOK_EVERY, self(), look),
    {noreply, State};
handle_info(check, State) ->
    prepare_index(),
    erlang:send_after(?CHECK_EVERY, self(), check),
    {noreply, warn(State)};
handle_info(_Message, State) -> {noreply, State}.

%% State has the time of the next warning about each unserved virtual host.
warn(State) ->
    Now = erlang:monotonic_time(millisecond),
    maps:from_list([{V, warn(V, maps:get(V, State, Now + ?WARN_AFTER), Now)} || V <- unserved()]).

warn(VHost, At, Now) when Now >= At ->
    ?LOG_WARNING("Millrace: virtual host ~ts has exchanges of the type ~ts, but no sidecar serves it, so delayed messages "
                 "are refused. ~ts", [VHost, ?TYPE, advice()]),
    Now + ?WARN_AGAIN_AFTER;
warn(_VHost, At, _Now) -> At.

%% What to do if no sidecar serves a virtual host.
advice() ->
    case rabbit_millrace_config:mode() of
        link -> "Run a sidecar for it, or set millrace.mode = supervise";
        supervise -> "The tab Jobs of the management UI says what its sidecar does"
    end.

%% The archived plugin has the same type. When it is disabled, it takes the name of the type with
%% it.
register_type() ->
    case rabbit_registry:lookup_module(exchange, ?TYPE) of
        {ok, rabbit_millrace_delayed} -> ok;
        _ ->
            ?LOG_NOTICE("Millrace: the exchange type ~ts is registered again", [?TYPE]),
            rabbit_registry:register(exchange, atom_to_binary(?TYPE), rabbit_millrace_delayed)
    end.

%% Without it, topics are matched slowly.
prepare_index() ->
    try rabbit_millrace_topic:prepare(fun exchanges/0) of
        _ -> ok
    catch Class:Reason ->
        ?LOG_WARNING("Millrace: the index of topic bindings cannot be made: ~tp ~tp", [Class, Reason])
    end.

exchanges() -> lists:append([exchanges(V) || V <- rabbit_vhost:list_names()]).

exchanges(VHost) -> [X || #exchange{type = ?TYPE} = X <- rabbit_exchange:list(VHost)].

%% Without Khepri, the type of an exchange adds its bindings to an index. The index lacks those that
%% were made or recovered while the plugin was not enabled.
restore(#exchange{name = Name} = X) ->
    Bindings = rabbit_binding:list_for_source(Name),
    case rabbit_millrace_delayed:inner(X) of
        rabbit_exchange_type_topic ->
            length(Bindings) =:= indexed(Name) orelse
                mnesia:transaction(fun() -> [rabbit_millrace_delayed:add_binding(transaction, X, B) || B <- Bindings] end);
        _ -> ok
    end.

indexed(Name) ->
    Any = #topic_trie_binding{trie_binding = #trie_binding{exchange_name = Name, _ = '_'}, _ = '_'},
    length(mnesia:dirty_match_object(rabbit_topic_trie_binding, Any)).
