%% Starts the supervision tree of the plugin, and starts it again after a pause when it ends because
%% its processes fail too often. Otherwise such failures would reach RabbitMQ's own supervisors.
-module(rabbit_millrace_keeper).
-behaviour(gen_server).
-include_lib("kernel/include/logger.hrl").

-export([start_link/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

-define(PAUSE, 30000).
-define(STOP_TIMEOUT, 20000).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

init([]) ->
    process_flag(trap_exit, true),
    {ok, start_tree(undefined)}.

handle_call(_Request, _From, Tree) -> {reply, {error, unknown}, Tree}.

handle_cast(_Request, Tree) -> {noreply, Tree}.

handle_info({'EXIT', Tree, Reason}, Tree) ->
    ?LOG_ERROR("Millrace's processes fail too often: they start again in ~b s. Reason: ~tp",
               [?PAUSE div 1000, Reason]),
    erlang:send_after(?PAUSE, self(), start),
    {noreply, undefined};
handle_info(start, undefined) ->
    {noreply, start_tree(undefined)};
handle_info(_Message, Tree) ->
    {noreply, Tree}.

terminate(_Reason, undefined) -> ok;
terminate(_Reason, Tree) ->
    Monitor = monitor(process, Tree),
    catch rabbit_millrace_sidecars:stop_all(), % there are none in mode link
    exit(Tree, shutdown),
    receive
        {'DOWN', Monitor, process, Tree, _} -> ok
    after ?STOP_TIMEOUT -> exit(Tree, kill)
    end.

start_tree(undefined) ->
    case rabbit_millrace_tree:start_link() of
        {ok, Tree} -> Tree;
        Fault ->
            ?LOG_ERROR("Millrace cannot start: it tries again in ~b s. Reason: ~tp",
                       [?PAUSE div 1000, Fault]),
            erlang:send_after(?PAUSE, self(), start),
            undefined
    end.
