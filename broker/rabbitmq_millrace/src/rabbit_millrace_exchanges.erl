%% Keeps the delayed exchanges of this node working: it restores what RabbitMQ cannot know before
%% the plugin runs, and what another plugin takes away.
-module(rabbit_millrace_exchanges).
-behaviour(gen_server).
-include_lib("kernel/include/logger.hrl").
-include_lib("rabbit_common/include/rabbit.hrl").

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(TYPE, 'x-delayed-message').
-define(LOOK_EVERY, 250).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

init([]) ->
    _ = rabbit_millrace_topic:needed() orelse [restore(X) || X <- exchanges()],
    self() ! look,
    {ok, none}.

handle_call(_Request, _From, State) -> {reply, {error, unknown}, State}.

handle_cast(_Request, State) -> {noreply, State}.

handle_info(look, State) ->
    register_type(),
    erlang:send_after(?LOOK_EVERY, self(), look),
    {noreply, State};
handle_info(_Message, State) -> {noreply, State}.

%% The archived plugin has the same type. When it is disabled, it takes the name of the type with
%% it.
register_type() ->
    case rabbit_registry:lookup_module(exchange, ?TYPE) of
        {ok, rabbit_millrace_delayed} -> ok;
        _ ->
            ?LOG_NOTICE("Millrace: the exchange type ~ts is registered again", [?TYPE]),
            rabbit_registry:register(exchange, atom_to_binary(?TYPE), rabbit_millrace_delayed)
    end.

exchanges() ->
    [X || VHost <- rabbit_vhost:list_names(), #exchange{type = ?TYPE} = X <- rabbit_exchange:list(VHost)].

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
