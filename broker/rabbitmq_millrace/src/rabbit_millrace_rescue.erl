%% Stores the messages that wait in files of the archived rabbitmq_delayed_message_exchange: in a
%% folder of Mnesia that no node uses. The upgrade of a node can leave such files behind.
%%
%%     rabbitmqctl eval 'rabbit_millrace_rescue:run("/var/lib/rabbitmq/mnesia/rabbit@host").'
-module(rabbit_millrace_rescue).

-export([run/1, count/1]).

-define(BATCH, 200).

%% The changes that Mnesia has not yet written to the files of the tables, the older ones first.
-define(LOGS, ["PREVIOUS.LOG", "LATEST.LOG"]).

%% Stores all messages, and renames the files of the tables, so that they are stored once only.
run(Folder) ->
    Files = files(Folder),
    Entries = entries(Folder, Files),
    case {Files, used(Files), unserved(Entries)} of
        {[], _, _} -> failed("there are no files ~ts*.DCD in ~ts", [rabbit_millrace_archived:name(), Folder]);
        {_, [_ | _] = Used, _} -> failed("this node uses the table ~ts: its messages are taken over without this command", [hd(Used)]);
        {_, [], [_ | _] = VHosts} ->
            failed("create these virtual hosts, and run a sidecar for each: ~ts", [lists:join(", ", VHosts)]);
        {_, [], []} ->
            Stored = store(Entries),
            case length(Entries) - Stored of
                0 ->
                    [ok = file:rename(F, F ++ ".rescued") || F <- Files],
                    {rescued, Stored};
                Left ->
                    failed("~b messages are rescued, and ~b are not: the log of this node says why. If you repeat the "
                           "command, the rescued ones come twice", [Stored, Left])
            end
    end.

%% How many messages wait in the files of a folder.
count(Folder) -> length(entries(Folder, files(Folder))).

failed(Format, Args) -> {error, unicode:characters_to_binary(io_lib:format(Format, Args))}.

files(Folder) ->
    Prefix = atom_to_list(rabbit_millrace_archived:name()),
    [filename:join(Folder, F) || Extension <- [".DCD", ".DCL"], F <- filelib:wildcard(Prefix ++ "*" ++ Extension, Folder),
                                 not lists:suffix("_index" ++ Extension, F)].

%% The name of the table that a file belongs to.
table(File) -> list_to_atom(filename:rootname(filename:basename(File))).

used(Files) ->
    [T || T <- lists:usort([table(F) || F <- Files]), mnesia:system_info(is_running) =:= yes,
          lists:member(T, mnesia:system_info(tables))].

unserved(Entries) ->
    [V || V <- lists:usort([rabbit_millrace_archived:vhost(E) || E <- Entries]),
          not rabbit_amqqueue:exists(rabbit_millrace_record:stream(V))].

store([]) -> 0;
store(Entries) ->
    {Now, Later} = lists:split(min(?BATCH, length(Entries)), Entries),
    length(rabbit_millrace_archived:store(Now)) + store(Later).

%% Mnesia's files are logs of Erlang's disk_log. Reading them needs no Mnesia, which would accept
%% them only on a node with the same name.
entries(_Folder, []) -> [];
entries(Folder, Files) ->
    Content = ets:new(entries, [bag, {keypos, 2}]),
    Tables = lists:usort([table(F) || F <- Files]),
    try
        [read(F, fun(Term) -> change(Content, Tables, Term) end)
         || F <- Files ++ [filename:join(Folder, L) || L <- ?LOGS], filelib:is_regular(F)],
        ets:tab2list(Content)
    after ets:delete(Content)
    end.

read(File, Each) ->
    {ok, Log} = disk_log:open([{name, make_ref()}, {file, File}, {mode, read_only}]),
    try chunks(Log, disk_log:chunk(Log, start), Each)
    after ok = disk_log:close(Log)
    end.

chunks(_Log, eof, _Each) -> ok;
chunks(Log, Chunk, Each) ->
    lists:foreach(Each, element(2, Chunk)),
    chunks(Log, disk_log:chunk(Log, element(1, Chunk)), Each).

%% A file has entries, or changes of them. A log has transactions, with the changes of tables on the
%% disk as their fifth element.
change(Content, _Tables, {delay_entry, _, _, _} = Entry) -> ets:insert(Content, Entry);
change(Content, Tables, {{Table, Key}, Value, Change}) ->
    _ = lists:member(Table, Tables) andalso change(Content, Change, Key, Value);
change(Content, Tables, Commit) when element(1, Commit) =:= commit -> [change(Content, Tables, C) || C <- element(5, Commit)];
change(_Content, _Tables, _Header) -> ok.

change(Content, write, _Key, Entry) -> ets:insert(Content, Entry);
change(Content, delete, Key, _Value) -> ets:delete(Content, Key);
change(Content, delete_object, _Key, Entry) -> ets:delete_object(Content, Entry);
change(Content, clear_table, _Key, _Value) -> ets:delete_all_objects(Content).
