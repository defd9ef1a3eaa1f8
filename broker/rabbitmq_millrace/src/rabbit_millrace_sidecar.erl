%% Runs the sidecar of one virtual host as a child of this node. The sidecar starts with the plugin
%% and stops with it. When it exits, it starts again with back-off. Its standard input ends when the
%% node dies, however that happens, and then the sidecar stops.
-module(rabbit_millrace_sidecar).
-behaviour(gen_server).
-include_lib("kernel/include/logger.hrl").

-export([start_link/1, restart/1, stop_for_good/1, new_table/0, list/0, find/1, forget/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(TABLE, rabbit_millrace).
-define(FIRST_PAUSE, 1000).
-define(LONGEST_PAUSE, 30000).
-define(STEADY, 60000).       % a sidecar that ran for so long starts again after the first pause
-define(STOP_TIMEOUT, 10000). % below the supervisor's
-define(TAIL, 20).            % lines of the log
-define(LONGEST_LINE, 4096).
-define(LONGEST_REASON, 1000).

start_link(VHost) -> gen_server:start_link(?MODULE, VHost, []).

%% Stops the sidecar, and starts it again.
restart(Pid) -> gen_server:cast(Pid, restart).

%% Begins to stop the sidecar, which does not start again, and does not wait.
stop_for_good(Pid) -> gen_server:cast(Pid, stop).

%% Creates the table that describes all sidecars of this node. Its owner is the caller.
new_table() -> ets:new(?TABLE, [named_table, public, {read_concurrency, true}]).

list() ->
    case ets:whereis(?TABLE) of
        undefined -> [];
        _ -> lists:sort(ets:tab2list(?TABLE))
    end.

%% Returns {ok, Sidecar} or error.
find(VHost) ->
    case ets:whereis(?TABLE) =/= undefined andalso ets:lookup(?TABLE, VHost) of
        [{_, Sidecar}] -> {ok, Sidecar};
        _ -> error
    end.

%% Deletes what was kept for a virtual host that does not exist any more.
forget(VHost) ->
    ets:delete(?TABLE, VHost),
    _ = file:delete(rabbit_millrace_place:trusted(VHost)),
    _ = file:del_dir_r(rabbit_millrace_place:state(VHost)),
    ok.

init(VHost) ->
    process_flag(trap_exit, true),
    S = #{vhost => VHost, state => starting, restarts => 0, pause => ?FIRST_PAUSE, tail => [], run => []},
    {ok, publish(S), {continue, start}}.

handle_continue(start, S) -> {noreply, start(S)}.

handle_call(_Request, _From, S) -> {reply, {error, unknown}, S}.

handle_cast(restart, #{port := _} = S0) ->
    S = stop(S0),
    self() ! start,
    {noreply, publish(S#{state := starting})};
handle_cast(stop, S) -> {noreply, publish((stop(S))#{state := stopping})};
handle_cast(_Request, S) -> {noreply, S}.

handle_info({Port, {data, {_, Line}}}, #{port := Port} = S) ->
    {noreply, publish(log(utf8(Line), S))};
handle_info({Port, {exit_status, Status}}, #{port := Port} = S) ->
    {noreply, exited(Status, S)};
handle_info(start, #{port := _} = S) -> {noreply, S};
handle_info(start, #{state := stopping} = S) -> {noreply, S};
handle_info(start, S) -> {noreply, start(S)};
handle_info(_Message, S) -> {noreply, S}.

terminate(_Reason, #{vhost := VHost} = S) ->
    _ = stop(S),
    ets:delete(?TABLE, VHost),
    ok.

start(#{vhost := VHost} = S) ->
    try
        case rabbit_millrace_user:prepare(VHost) of
            {ok, Password} -> open(Password, S);
            {error, Text} -> failed(Text, S)
        end
    catch
        throw:{failed, Reason} -> failed(Reason, S);
        Class:Reason -> failed(utf8(io_lib:format("the sidecar cannot be started: ~tp ~tp", [Class, Reason])), S)
    end.

open(Password, #{vhost := VHost} = S) ->
    Program = program(rabbit_millrace_config:sidecar()),
    Socket = socket(VHost),
    Key = binary:encode_hex(crypto:strong_rand_bytes(32)),
    Port = open_port({spawn_executable, Program},
                     [{args, args(VHost, Socket)}, {env, environment(VHost, Password(), Key)},
                      {line, ?LONGEST_LINE}, exit_status, stderr_to_stdout, use_stdio, binary, hide]),
    OsPid = case erlang:port_info(Port, os_pid) of {os_pid, Id} -> Id; undefined -> null end,
    ?LOG_INFO("Millrace: the sidecar of virtual host ~ts has started, process ~p", [VHost, OsPid]),
    publish(S#{state := running, port => Port, pid => OsPid, since => now_ms(), run := [], socket => Socket,
               key => fun() -> Key end}).

program(Name) ->
    case {filename:pathtype(Name), filelib:is_regular(Name)} of
        {absolute, true} -> Name;
        {absolute, false} ->
            throw({failed, utf8(["there is no sidecar at ", Name, ": install Millrace there, or set millrace.sidecar"])});
        _ ->
            case os:find_executable(Name) of
                false -> throw({failed, utf8(["there is no program ", Name, " in PATH: set millrace.sidecar"])});
                Path -> Path
            end
    end.

socket(VHost) ->
    case rabbit_millrace_place:socket(VHost) of
        {ok, Path} -> Path;
        {error, Reason} -> throw({failed, Reason})
    end.

args(VHost, Socket) ->
    ["serve", "--stop-with-stdin", "--http-addr", "unix:" ++ Socket, "--behind-proxy", "--auth", "header",
     "--http-prefix", binary_to_list(rabbit_millrace_config:path(VHost)), "--identity", atom_to_list(node()),
     "--state-dir", rabbit_millrace_place:state(VHost), "--log-format", "text"].

%% Variables of the broker's own environment must not configure the sidecar.
environment(VHost, Password, Key) ->
    Set = [{"MILLRACE_AMQP_URL", must(rabbit_millrace_address:amqp_url(VHost))},
           {"MILLRACE_MANAGEMENT_URL", must(rabbit_millrace_address:management_url())},
           {"MILLRACE_AMQP_USER", binary_to_list(rabbit_millrace_config:user())},
           {"MILLRACE_AMQP_PASSWORD", binary_to_list(Password)},
           {"MILLRACE_AUTH_HEADER_KEY", binary_to_list(Key)}
           | [{Name, Value} || {Name, Value} <- [{"SSL_CERT_FILE", trusted(VHost)},
                                                 {"MILLRACE_CONFIG", rabbit_millrace_config:sidecar_config()},
                                                 {"MILLRACE_DELIVER_TO", rabbit_millrace_config:deliver_to()}],
                               Value =/= undefined]],
    [{Name, false} || Name <- inherited(), not lists:keymember(Name, 1, Set)] ++ Set.

must({ok, Value}) -> Value;
must({error, Reason}) -> throw({failed, utf8(Reason)}).

%% The file of the certificates that the sidecar trusts besides those of the system's folder of
%% certificates, or undefined if it needs none.
trusted(VHost) ->
    case rabbit_millrace_address:trusted() of
        <<>> -> undefined;
        Trusted ->
            File = rabbit_millrace_place:trusted(VHost),
            case {filelib:ensure_dir(File), file:write_file(File, Trusted)} of
                {_, ok} -> File;
                {_, {error, Fault}} -> throw({failed, utf8([File, " cannot be written: ", file:format_error(Fault)])})
            end
    end.

inherited() ->
    Names = [hd(string:split(Line, "=")) || Line <- os:getenv()],
    [Name || Name <- Names, lists:prefix("MILLRACE_", Name) orelse lists:suffix("ERLANG_COOKIE", Name)].

%% Keeps a line of the sidecar's log, and writes it to RabbitMQ's.
log(Line, #{vhost := VHost, tail := Tail, run := Run} = S) ->
    ?LOG(level(Line), "Millrace, virtual host ~ts: ~ts", [VHost, Line]),
    S#{tail := lists:sublist([Line | Tail], ?TAIL), run := lists:sublist([Line | Run], ?TAIL)}.

level(Line) ->
    Levels = [{<<"level=ERROR">>, error}, {<<"level=WARN">>, warning}, {<<"level=DEBUG">>, debug}],
    case [Level || {Text, Level} <- Levels, binary:match(Line, Text) =/= nomatch] of
        [Level | _] -> Level;
        [] -> info
    end.

exited(Status, #{run := Run} = S) -> failed(reason(Status, Run), maps:without([port, pid, key, socket], S)).

%% The reason of an exit: what a sidecar that gives up writes after its log, or else the last warning
%% or error in its log. Run has the lines of this run, the last one first.
reason(Status, Run) ->
    Said = lists:takewhile(fun(Line) -> not is_log(Line) end, Run),
    Bad = [Line || Line <- Run, lists:member(level(Line), [warning, error])],
    Lines = case {Said, Bad} of
        {[], []} -> [<<"the sidecar's log does not say why">>];
        {[], [Last | _]} -> [Last];
        _ -> lists:reverse(Said)
    end,
    Text = utf8([status(Status), ": ", lists:join("\n", Lines)]),
    utf8(string:slice(Text, 0, ?LONGEST_REASON)).

status(Status) when Status > 128 -> io_lib:format("killed by signal ~b", [Status - 128]);
status(Status) -> io_lib:format("exit status ~b", [Status]).

is_log(Line) -> binary:match(Line, <<"time=">>) =:= {0, 5}.

%% Waits before the next start.
failed(Reason, #{vhost := VHost, pause := Pause0, restarts := Restarts} = S) ->
    Ran = case S of #{since := Since} -> now_ms() - Since; _ -> 0 end,
    Pause = case Ran > ?STEADY of true -> ?FIRST_PAUSE; false -> Pause0 end,
    ?LOG_ERROR("Millrace: the sidecar of virtual host ~ts does not run, and starts again in ~b s. Reason: ~ts",
               [VHost, Pause div 1000, Reason]),
    erlang:send_after(Pause, self(), start),
    publish((maps:remove(since, S))#{state := waiting, restarts := Restarts + 1, starts_at => now_ms() + Pause,
                                     pause := min(Pause * 2, ?LONGEST_PAUSE),
                                     last_exit => #{reason => Reason, at => now_ms()}}).

%% Stops the sidecar in an orderly way. A sidecar that does not stop in time is killed.
stop(#{port := Port, pid := OsPid, vhost := VHost} = S) ->
    signal("TERM", OsPid),
    case await_exit(Port, ?STOP_TIMEOUT, S) of
        exited -> ok;
        timeout ->
            ?LOG_WARNING("Millrace: the sidecar of virtual host ~ts does not stop, and is killed", [VHost]),
            signal("KILL", OsPid),
            await_exit(Port, 1000, S)
    end,
    catch port_close(Port),
    maps:without([port, pid, key, socket, since], S);
stop(S) -> S.

%% The process exists until its exit status has been read, so its number is not another's.
signal(_Name, null) -> ok;
signal(Name, OsPid) -> os:cmd("kill -" ++ Name ++ " " ++ integer_to_list(OsPid)).

await_exit(Port, Timeout, S) ->
    receive
        {Port, {exit_status, _}} -> exited;
        {Port, {data, {_, Line}}} -> await_exit(Port, Timeout, log(utf8(Line), S));
        {'EXIT', Port, _} -> exited
    after Timeout -> timeout
    end.

%% Describes the sidecar for requests, which read the table and never wait for this process.
publish(#{vhost := VHost} = S) ->
    ets:insert(?TABLE, {VHost, maps:without([port, pause, run, vhost], S)}),
    S.

now_ms() -> erlang:system_time(millisecond).

%% Text that is surely UTF-8.
utf8(Text) ->
    case unicode:characters_to_binary(Text) of
        Bin when is_binary(Bin) -> Bin;
        _ -> unicode:characters_to_binary(Text, latin1)
    end.
