%% Supervises one process for each virtual host with delayed messages that are handed over.
-module(rabbit_millrace_handovers).
-behaviour(supervisor).

-export([start_link/0, init/1, server/1]).

start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

init([]) -> {ok, {#{strategy => one_for_one, intensity => 20, period => 60}, []}}.

%% Returns the process of a virtual host, and starts it if it does not run.
server(VHost) ->
    Child = #{id => VHost, start => {rabbit_millrace_handover, start_link, [VHost]}, restart => temporary, shutdown => 5000},
    case supervisor:start_child(?MODULE, Child) of
        {ok, Server} -> Server;
        {error, {already_started, Server}} -> Server;
        {error, Reason} -> error(Reason)
    end.
