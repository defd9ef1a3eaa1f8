%% Supervises one process for each sidecar of this node. The exits of a sidecar itself are handled
%% there, with back-off.
-module(rabbit_millrace_sidecars).
-behaviour(supervisor).

-export([start_link/0, init/1, start_sidecar/1, stop_sidecar/1, stop_all/0, running/0]).

-define(STOP_TIMEOUT, 15000).

start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

init([]) -> {ok, {#{strategy => one_for_one, intensity => 20, period => 60}, []}}.

start_sidecar(VHost) ->
    supervisor:start_child(?MODULE, #{id => VHost, start => {rabbit_millrace_sidecar, start_link, [VHost]},
                                      shutdown => ?STOP_TIMEOUT}).

stop_sidecar(VHost) ->
    _ = supervisor:terminate_child(?MODULE, VHost),
    _ = supervisor:delete_child(?MODULE, VHost),
    ok.

%% Begins to stop all sidecars, at the same time: a supervisor stops its children one after the other.
stop_all() -> [rabbit_millrace_sidecar:stop_for_good(Pid) || {_, Pid} <- running(), is_pid(Pid)].

%% The virtual hosts and processes of all sidecars.
running() -> [{VHost, Pid} || {VHost, Pid, _, _} <- supervisor:which_children(?MODULE)].
