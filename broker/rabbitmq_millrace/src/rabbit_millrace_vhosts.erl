%% Decides which virtual hosts have a sidecar on this node: those that the settings name, those that
%% have Millrace's streams or delayed exchanges, and those where a client declares such an exchange.
%% It looks again regularly, so virtual hosts that are created or deleted later are followed.
-module(rabbit_millrace_vhosts).
-behaviour(gen_server).
-include_lib("kernel/include/logger.hrl").

-export([start_link/0, missing/0, serve/1, restart_sidecars/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(LOOK_EVERY, 2000).
-define(JOURNAL, <<"job_journal">>).

%% How long a virtual host without streams waits until all nodes of the cluster run.
-define(FORMATION_TIMEOUT, 120000).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% The virtual hosts that the settings name and that do not exist.
missing() -> rabbit_millrace_config:vhosts() -- rabbit_vhost:list_names().

%% Starts a sidecar for a virtual host, unless it has one.
serve(VHost) -> gen_server:cast(?MODULE, {serve, VHost}).

%% Starts the sidecars again, with the password that is valid then.
restart_sidecars() -> gen_server:cast(?MODULE, restart_sidecars).

init([]) ->
    self() ! look,
    {ok, {now_ms(), rabbit_millrace_address:trusted()}}.

handle_call(_Request, _From, State) -> {reply, {error, unknown}, State}.

handle_cast(restart_sidecars, State) ->
    [rabbit_millrace_sidecar:restart(Pid) || {_, Pid} <- rabbit_millrace_sidecars:running(), is_pid(Pid)],
    {noreply, State};
handle_cast({serve, VHost}, {Started, _} = State) ->
    _ = rabbit_vhost:exists(VHost) andalso may_create(Started) andalso rabbit_millrace_sidecars:start_sidecar(VHost),
    {noreply, State};
handle_cast(_Request, State) -> {noreply, State}.

handle_info(look, {Started, Trusted}) ->
    try look(Started)
    catch Class:Reason -> ?LOG_WARNING("Millrace: the virtual hosts cannot be listed: ~tp ~tp", [Class, Reason])
    end,
    erlang:send_after(?LOOK_EVERY, self(), look),
    {noreply, {Started, follow(Trusted)}};
handle_info(_Message, State) -> {noreply, State}.

%% A sidecar that runs stays until its virtual host is deleted: it creates its streams itself. A
%% stream has replicas only on nodes that run when it is created, so the first sidecar of a virtual
%% host waits until a new cluster is complete.
look(Started) ->
    Existing = rabbit_vhost:list_names(),
    Running = [VHost || {VHost, _} <- rabbit_millrace_sidecars:running()],
    Named = rabbit_millrace_config:vhosts(),
    [rabbit_millrace_sidecars:start_sidecar(V)
     || V <- Existing -- Running,
        has_streams(V) orelse (lists:member(V, Named) orelse rabbit_millrace_exchanges:exist(V)) andalso may_create(Started)],
    [begin
         rabbit_millrace_sidecars:stop_sidecar(V),
         rabbit_millrace_sidecar:forget(V)
     end || V <- Running -- Existing],
    [recreated(V) || {V, #{state := running}} <- rabbit_millrace_sidecar:list(),
                     lists:member(V, Existing), not rabbit_millrace_user:may_use(V)].

%% A virtual host that was deleted and created again between two looks has no streams and no
%% permissions. The sidecar starts again, which gives the permissions.
recreated(VHost) ->
    ?LOG_NOTICE("Millrace: the broker user of the sidecars has lost its permissions in virtual host ~ts; "
                "the sidecar starts again with new ones", [VHost]),
    [rabbit_millrace_sidecar:restart(Pid) || {V, Pid} <- rabbit_millrace_sidecars:running(), V =:= VHost, is_pid(Pid)].

%% Certificates that are renewed take effect when the sidecars start.
follow(Trusted) ->
    case rabbit_millrace_address:trusted() of
        Trusted -> Trusted;
        <<>> -> Trusted; % a file is being replaced
        New ->
            ?LOG_NOTICE("Millrace: the certificates of RabbitMQ's listeners have changed; the sidecars start again"),
            restart_sidecars(),
            New
    end.

may_create(Started) ->
    length(rabbit_nodes:all_running()) >= rabbit_millrace_config:cluster_size() orelse now_ms() - Started > ?FORMATION_TIMEOUT.

now_ms() -> erlang:monotonic_time(millisecond).

has_streams(VHost) -> rabbit_amqqueue:exists(rabbit_misc:r(VHost, queue, ?JOURNAL)).
