%% What Khepri calls for each change of a binding of a delayed exchange: see rabbit_millrace_topic.
%% Khepri takes these functions out of their module, and stores them for all nodes. It cannot read
%% modules that an older Erlang has compiled, so the node compiles this file itself.
-module(rabbit_millrace_index).

-export([project/0]).

project() -> fun project/4.

project(Table, [_, _, VHost, _, Exchange, _, Kind, Name, Key], Old, New) ->
    case {is_map_key(data, Old), is_map_key(data, New)} of
        {false, true} -> change(Table, {VHost, Exchange}, {Kind, Name, Key}, 1);
        {true, false} -> change(Table, {VHost, Exchange}, {Kind, Name, Key}, -1);
        _ -> ok
    end.

change(Table, X, {_, _, Key} = Binding, By) ->
    At = {X, count(Table, X, [], words(Key), By)},
    Bindings = bindings(ets:lookup(Table, At)),
    case By of
        1 -> ets:insert(Table, {At, Bindings#{Binding => true}});
        -1 when map_size(Bindings) =:= 1 -> ets:delete(Table, At);
        -1 -> ets:insert(Table, {At, maps:remove(Binding, Bindings)})
    end.

%% Counts a binding at each edge to its node, and returns the node.
count(_Table, _X, Node, [], _By) -> Node;
count(Table, X, Node, [Word | Words], By) ->
    Edge = {X, Node, Word},
    case ets:update_counter(Table, Edge, By, {Edge, 0}) of
        0 -> ets:delete(Table, Edge);
        _ -> ok
    end,
    count(Table, X, [Word | Node], Words, By).

%% The empty key has no words.
words(Key) when byte_size(Key) =:= 0 -> [];
words(Key) -> binary:split(Key, <<".">>, [global]).

bindings([{_, Bindings}]) -> Bindings;
bindings([]) -> #{}.
