%% Matches routing keys with the bindings of delayed exchanges where RabbitMQ keeps its metadata in
%% Khepri: its own index of topic bindings has those of the type topic only. So the plugin has an
%% index of its own, which Khepri keeps on each node as a projection.
%%
%% The index is a tree of words. A node is the list of the words that lead to it, the last one first.
%% Each row has a node or an edge of an exchange:
%%
%%     {{Exchange, Node, Word}, Count}          how many bindings use the edge
%%     {{Exchange, Node}, #{Binding => true}}   the bindings that end at the node
%%
%% An exchange is {VHost, Name}, and a binding {Kind, Name, Key}: its destination and its key.
-module(rabbit_millrace_topic).
-include_lib("rabbit_common/include/rabbit.hrl").

-export([needed/0, prepare/1, forget/0, match/3]).

%% Rows of another form need another name: the projection outlives the plugin.
-define(TABLE, rabbit_millrace_topic_1).

needed() -> erlang:function_exported(rabbit_khepri, is_enabled, 0) andalso rabbit_khepri:is_enabled().

%% Makes the index if it is needed and does not exist. Khepri fills it some time later on this node.
%% Until it has all bindings of the exchanges that a function returns, matches are searched for.
prepare(Exchanges) ->
    case needed() andalso {ets:whereis(?TABLE), usable()} of
        {undefined, _} -> register_projection();
        {Table, false} -> persistent_term:put(?MODULE, lists:all(fun(X) -> is_complete(Table, X) end, Exchanges()));
        _ -> ok
    end.

usable() -> persistent_term:get(?MODULE, false).

forget() -> persistent_term:erase(?MODULE).

is_complete(Table, #exchange{name = #resource{virtual_host = VHost, name = Name} = Source}) ->
    Bindings = [{Kind, To, Key} || #binding{key = Key, destination = #resource{kind = Kind, name = To}} <- rabbit_binding:list_for_source(Source)],
    Indexed = lists:append([maps:keys(B) || [B] <- ets:match(Table, {{{VHost, Name}, '_'}, '$1'})]),
    lists:usort(Bindings) =:= lists:sort(Indexed).

register_projection() ->
    [Any] = khepri_path:from_string("/*"),
    Delayed = {if_data_matches, #exchange{type = 'x-delayed-message', _ = '_'}, [], undefined},
    case rabbit_db_binding:khepri_route_path(Any, Delayed, Any, Any, Any) of
        [rabbitmq, vhosts, Any, exchanges, Delayed, bindings, Any, Any, Any] = Pattern ->
            Options = #{type => set, read_concurrency => true,
                        standalone_fun_options => #{should_process_function => fun should_process/4}},
            Projection = khepri_projection:new(?TABLE, project(), Options),
            khepri:register_projection(rabbit_khepri:get_store_id(), Pattern, Projection);
        _ -> unsupported % until RabbitMQ 4.1, the path of a binding says nothing of its exchange
    end.

%% The function that fills the index. Khepri finds it where the node has compiled it.
project() ->
    Folder = rabbit_millrace_place:compiled(),
    Source = filename:join(code:priv_dir(rabbitmq_millrace), "rabbit_millrace_index.erl"),
    ok = filelib:ensure_path(Folder),
    {ok, Module} = compile:file(Source, [{outdir, Folder}, deterministic]),
    true = code:add_pathz(Folder),
    {module, Module} = code:load_file(Module),
    Module:project().

%% Khepri copies the functions that a function calls, but for those that it knows. It refuses to copy
%% these two kinds, which are the same on all nodes.
should_process(binary, split, 3, _From) -> false;
should_process(ets, _Function, _Arity, _From) -> false;
should_process(Module, Function, Arity, From) -> khepri_tx_adv:should_process_function(Module, Function, Arity, From).

%% The empty key has no words.
words(Key) when byte_size(Key) =:= 0 -> [];
words(Key) -> binary:split(Key, <<".">>, [global]).

bindings(Table, X, Node) ->
    case ets:lookup(Table, {X, Node}) of
        [{_, Bindings}] -> Bindings;
        [] -> #{}
    end.

%% Returns the destinations whose bindings match one of the routing keys.
match(#resource{virtual_host = VHost, name = Name} = Exchange, Keys, Options) ->
    WithKeys = maps:get(return_binding_keys, Options, false),
    case usable() andalso ets:whereis(?TABLE) of
        Table when is_reference(Table) ->
            X = {VHost, Name},
            Found = lists:foldl(fun(Key, Before) -> walk(Table, X, [], words(Key), Before) end, #{}, Keys),
            [destination(WithKeys, rabbit_misc:r(VHost, Kind, To), Key) || {Kind, To, Key} <- maps:keys(Found)];
        _ -> search(Exchange, Keys)
    end.

destination(true, #resource{kind = queue} = Queue, Key) -> {Queue, Key};
destination(_WithKeys, Destination, _Key) -> Destination.

%% Adds the bindings that match the words from a node on.
walk(Table, X, Node, Words, Before) ->
    After = case ets:member(Table, {X, Node, <<"#">>}) of
        true -> skip(Table, X, [<<"#">> | Node], Words, Before);
        false -> Before
    end,
    case Words of
        [] -> maps:merge(After, bindings(Table, X, Node));
        [Word | Rest] -> step(Table, X, Node, Word, Rest, step(Table, X, Node, <<"*">>, Rest, After))
    end.

step(Table, X, Node, Word, Rest, Before) ->
    case ets:member(Table, {X, Node, Word}) of
        true -> walk(Table, X, [Word | Node], Rest, Before);
        false -> Before
    end.

%% Adds those that match any number of words less.
skip(Table, X, Node, Words, Before) ->
    After = walk(Table, X, Node, Words, Before),
    case Words of
        [] -> After;
        [_ | Rest] -> skip(Table, X, Node, Rest, After)
    end.

%% Looks at all bindings. RabbitMQ 4.0 and 4.1 have no index.
search(Exchange, Keys) ->
    All = [words(Key) || Key <- Keys],
    rabbit_router:match_bindings(Exchange, fun(#binding{key = Key}) ->
        Pattern = words(Key),
        lists:any(fun(Words) -> matches(Pattern, Words) end, All)
    end).

matches([], Words) -> Words =:= [];
matches([Word | Pattern] = All, Words) when Word =:= <<"#">> ->
    matches(Pattern, Words) orelse Words =/= [] andalso matches(All, tl(Words));
matches([Word | Pattern], [First | Words]) when Word =:= First; Word =:= <<"*">> -> matches(Pattern, Words);
matches(_, _) -> false.
