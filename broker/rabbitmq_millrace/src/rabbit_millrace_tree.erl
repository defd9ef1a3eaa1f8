%% The supervision tree below the keeper.
-module(rabbit_millrace_tree).
-behaviour(supervisor).

-export([start_link/0, init/1]).

start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

init([]) ->
    rabbit_millrace_sidecar:new_table(),
    Sessions = worker(rabbit_millrace_sessions),
    Delayed = [worker(rabbit_millrace_exchanges), supervisor(rabbit_millrace_handovers), worker(rabbit_millrace_takeover),
               worker(rabbit_millrace_counts)],
    Children = case rabbit_millrace_config:mode() of
        link -> [];
        supervise -> [Sessions, worker(rabbit_millrace_user), supervisor(rabbit_millrace_sidecars),
                      worker(rabbit_millrace_vhosts)]
    end,
    {ok, {#{strategy => one_for_one, intensity => 10, period => 60}, Delayed ++ Children}}.

worker(Module) -> #{id => Module, start => {Module, start_link, []}, shutdown => 5000}.

supervisor(Module) ->
    #{id => Module, start => {Module, start_link, []}, type => supervisor, shutdown => infinity}.
