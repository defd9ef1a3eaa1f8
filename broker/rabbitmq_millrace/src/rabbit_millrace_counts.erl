%% How many delayed messages wait for each exchange, as the sidecars of this node count them. The
%% management API shows these numbers as messages_delayed. They are some seconds old.
-module(rabbit_millrace_counts).
-behaviour(gen_server).
-include_lib("rabbit_common/include/rabbit.hrl").

-export([start_link/0, delayed/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(TABLE, ?MODULE).
-define(ASK_EVERY, 5000).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Returns how many messages wait for an exchange, or unknown if no sidecar of this node says so.
delayed(#exchange{name = #resource{virtual_host = VHost, name = Name}}) ->
    try ets:lookup_element(?TABLE, VHost, 2) of
        Counts -> maps:get(Name, Counts, 0)
    catch error:badarg -> unknown
    end.

init([]) ->
    ets:new(?TABLE, [named_table, {read_concurrency, true}]),
    self() ! ask,
    {ok, none}.

handle_call(_Request, _From, State) -> {reply, {error, unknown}, State}.

handle_cast(_Request, State) -> {noreply, State}.

handle_info(ask, State) ->
    Counts = [{VHost, C} || {VHost, Sidecar} <- rabbit_millrace_sidecar:list(), rabbit_millrace_exchanges:exist(VHost),
                            {ok, C} <- [ask(VHost, Sidecar)]],
    [ets:delete(?TABLE, VHost) || {VHost, _} <- ets:tab2list(?TABLE), not lists:keymember(VHost, 1, Counts)],
    ets:insert(?TABLE, Counts),
    erlang:send_after(?ASK_EVERY, self(), ask),
    {noreply, State};
handle_info(_Message, State) -> {noreply, State}.

%% Asks as a user who may only look.
ask(VHost, Sidecar) ->
    User = #user{username = <<"rabbitmq_millrace">>, tags = [monitoring], authz_backends = []},
    case rabbit_millrace_proxy:get(User, VHost, Sidecar, "/api/messages/exchanges") of
        {200, #{<<"items">> := Items}} ->
            {ok, maps:from_list([{Name, Scheduled + Retrying}
                                 || #{<<"exchange">> := Name, <<"scheduled">> := Scheduled, <<"retrying">> := Retrying} <- Items])};
        _ -> error
    end.
