%% Takes over the messages that wait in the tables of the archived rabbitmq_delayed_message_exchange
%% on this node. Each is stored as a record, and then deleted there: a crash in between repeats
%% messages, and loses none.
-module(rabbit_millrace_takeover).
-behaviour(gen_server).
-include_lib("kernel/include/logger.hrl").

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(SUPERVISOR, rabbit_delayed_message_sup).
-define(LOOK_EVERY, 5000).
-define(RETRY_AFTER, 30000).
-define(BATCH, 200).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

init([]) ->
    self() ! warn,
    self() ! look,
    {ok, none}.

handle_call(_Request, _From, State) -> {reply, {error, unknown}, State}.

handle_cast(_Request, State) -> {noreply, State}.

handle_info(warn, State) ->
    warn(mnesia:system_info(use_dir)),
    {noreply, State};
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

%% A node that was upgraded to Khepri may still have the files of the tables.
warn(true) -> ok;
warn(false) ->
    Folder = rabbit:data_dir(),
    try rabbit_millrace_rescue:count(Folder) of
        0 -> ok;
        Count ->
            ?LOG_WARNING("Millrace: ~b messages wait in files of rabbitmq_delayed_message_exchange. To have them delivered, run "
                         "rabbitmqctl eval 'rabbit_millrace_rescue:run(\"~ts\").'", [Count, Folder])
    catch Class:Reason -> ?LOG_WARNING("Millrace cannot read the files of rabbitmq_delayed_message_exchange: ~tp ~tp", [Class, Reason])
    end.

%% The index has the same keys, in the order of their time.
tables() ->
    Table = atom_to_list(rabbit_millrace_archived:name()) ++ atom_to_list(node()),
    {list_to_atom(Table), list_to_atom(Table ++ "_index")}.

exist({Table, Index}) ->
    mnesia:system_info(is_running) =:= yes andalso [Table, Index] -- mnesia:system_info(tables) =:= []
        andalso mnesia:wait_for_tables([Table, Index], 0) =:= ok.

%% Until each virtual host is served, the archived plugin continues with the messages it has.
ready() -> rabbit_millrace_exchanges:unserved() =:= [].

%% Its supervisor does not start it again.
stop_server() ->
    Server = rabbit_millrace_archived:name(),
    case whereis(Server) of
        undefined -> ok;
        _ ->
            ?LOG_NOTICE("Millrace takes over the delayed messages of rabbitmq_delayed_message_exchange"),
            supervisor:terminate_child(?SUPERVISOR, Server)
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
    Stored = rabbit_millrace_archived:store(Entries),
    [ok = mnesia:dirty_delete_object(Table, E) || E <- Stored],
    [ok = mnesia:dirty_delete(Index, K) || K <- Keys, mnesia:dirty_read(Table, K) =:= []],
    Counts = {Moved + length(Stored), Left + length(Entries) - length(Stored)},
    move(Table, Index, mnesia:dirty_next(Index, lists:last(Keys)), Counts).

keys(_Index, '$end_of_table', _Count) -> [];
keys(_Index, _Key, 0) -> [];
keys(Index, Key, Count) -> [Key | keys(Index, mnesia:dirty_next(Index, Key), Count - 1)].
