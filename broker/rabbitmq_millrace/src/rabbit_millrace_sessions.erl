%% Sessions of browsers: a cookie stands for the header Authorization that a user has sent once. A
%% session is kept in the memory of the node that has begun it; the other nodes ask that node. Each
%% request authenticates the user again, so a session gives no access that the user has lost.
-module(rabbit_millrace_sessions).
-behaviour(gen_server).

-export([start_link/0, begin_session/1, end_session/1, find/1, find_here/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(LASTS, 8 * 60 * 60).
-define(SWEEP_EVERY, 60000).
-define(MOST, 10000).
-define(ASK_TIMEOUT, 2000).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Begins a session, and returns the value of its cookie and how many seconds it lasts.
begin_session(Authorization) ->
    Secret = fun() -> Authorization end,
    {gen_server:call(?MODULE, {begin_session, Secret}), ?LASTS}.

end_session(Cookie) ->
    case node_of(Cookie) of
        undefined -> ok;
        Node -> gen_server:cast({?MODULE, Node}, {end_session, key(Cookie)})
    end.

%% Returns the header Authorization of a session, or undefined.
find(Cookie) ->
    case node_of(Cookie) of
        undefined -> undefined;
        Node when Node =:= node() -> find_here(key(Cookie));
        Node ->
            case rpc:call(Node, ?MODULE, find_here, [key(Cookie)], ?ASK_TIMEOUT) of
                Authorization when is_binary(Authorization) -> Authorization;
                _ -> undefined
            end
    end.

find_here(Key) ->
    Now = erlang:monotonic_time(second),
    case ets:whereis(?MODULE) =/= undefined andalso ets:lookup(?MODULE, Key) of
        [{_, Secret, Ends}] when Ends > Now -> Secret();
        _ -> undefined
    end.

%% The table is found by a hash, so that the time of a search says nothing about other sessions.
key(Cookie) -> crypto:hash(sha256, Cookie).

%% A cookie ends with the name of its node.
node_of(Cookie) ->
    case binary:split(Cookie, <<".">>) of
        [_, Name] ->
            case [N || N <- [node() | nodes()], encoded(N) =:= Name] of
                [Node] -> Node;
                [] -> undefined
            end;
        _ -> undefined
    end.

encoded(Node) -> binary:encode_hex(atom_to_binary(Node, utf8)).

init([]) ->
    ets:new(?MODULE, [named_table, protected, {read_concurrency, true}]),
    erlang:send_after(?SWEEP_EVERY, self(), sweep),
    {ok, []}.

handle_call({begin_session, Secret}, _From, State) ->
    case ets:info(?MODULE, size) >= ?MOST of
        true -> ets:delete_all_objects(?MODULE); % users sign in again
        false -> ok
    end,
    Cookie = iolist_to_binary([binary:encode_hex(crypto:strong_rand_bytes(32)), ".", encoded(node())]),
    ets:insert(?MODULE, {key(Cookie), Secret, erlang:monotonic_time(second) + ?LASTS}),
    {reply, Cookie, State};
handle_call(_Request, _From, State) -> {reply, {error, unknown}, State}.

handle_cast({end_session, Key}, State) ->
    ets:delete(?MODULE, Key),
    {noreply, State};
handle_cast(_Request, State) -> {noreply, State}.

handle_info(sweep, State) ->
    Now = erlang:monotonic_time(second),
    ets:select_delete(?MODULE, [{{'_', '_', '$1'}, [{'=<', '$1', Now}], [true]}]),
    erlang:send_after(?SWEEP_EVERY, self(), sweep),
    {noreply, State};
handle_info(_Message, State) -> {noreply, State}.
