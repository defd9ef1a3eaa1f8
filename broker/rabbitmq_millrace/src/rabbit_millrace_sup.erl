%% The top supervisor. Its only child, the keeper, does nothing that can fail, so that a fault in
%% this plugin never ends the application.
-module(rabbit_millrace_sup).
-behaviour(supervisor).

-export([start_link/0, init/1]).

start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

init([]) ->
    {ok, {#{strategy => one_for_one, intensity => 5, period => 60},
          [#{id => keeper, start => {rabbit_millrace_keeper, start_link, []}, shutdown => infinity}]}}.
