%% What the tab shows: the sidecars of this node, and what they answer to the user who asks.
-module(rabbit_millrace_wm_status).
-include_lib("rabbit_common/include/rabbit.hrl").

-export([init/2, to_json/2, content_types_provided/2, is_authorized/2]).

%% As in RabbitMQ 3.10 to 4.3.
-record(context, {user, password = none, impl}).

-define(ASK_TIMEOUT, 8000).

init(Req, _State) -> {cowboy_rest, Req, #context{}}.

content_types_provided(Req, Context) -> {[{<<"application/json">>, to_json}], Req, Context}.

is_authorized(Req, Context) -> rabbit_mgmt_util:is_authorized(Req, Context).

to_json(Req, #context{user = User} = Context) ->
    Sidecars = rabbit_millrace_sidecar:list(),
    Shown = [S || {VHost, _} = S <- Sidecars, rabbit_millrace_auth:may_use(User, VHost, Req)],
    Unserved = [VHost || VHost <- rabbit_millrace_exchanges:unserved(), not lists:keymember(VHost, 1, Sidecars),
                         rabbit_millrace_auth:may_use(User, VHost, Req)],
    rabbit_mgmt_util:reply(
        [{node, node()}, {mode, rabbit_millrace_config:mode()}, {url, text(rabbit_millrace_config:url())},
         {version, version()}, {missing, missing(User)}, {unserved, Unserved}, {vhosts, all(fun(S) -> describe(S, User) end, Shown)}], Req, Context).

text(undefined) -> null;
text(Text) -> unicode:characters_to_binary(Text).

version() ->
    {ok, Version} = application:get_env(rabbitmq_millrace, build),
    list_to_binary(Version).

%% Administrators see which virtual hosts of the settings do not exist.
missing(#user{tags = Tags}) ->
    case lists:member(administrator, Tags) of
        true -> rabbit_millrace_vhosts:missing();
        false -> []
    end.

%% Asks all sidecars at the same time.
all(Describe, Sidecars) ->
    Asked = [{VHost, spawn_monitor(fun() -> exit({described, Describe(S)}) end)} || {VHost, _} = S <- Sidecars],
    Ends = erlang:monotonic_time(millisecond) + ?ASK_TIMEOUT,
    [collect(VHost, Pid, Monitor, max(0, Ends - erlang:monotonic_time(millisecond))) || {VHost, {Pid, Monitor}} <- Asked].

collect(VHost, Pid, Monitor, Timeout) ->
    receive
        {'DOWN', Monitor, process, Pid, {described, Description}} -> Description;
        {'DOWN', Monitor, process, Pid, _} -> #{vhost => VHost, state => unknown}
    after Timeout ->
        exit(Pid, kill),
        demonitor(Monitor, [flush]),
        #{vhost => VHost, state => unknown}
    end.

describe({VHost, Sidecar}, User) ->
    Get = fun(Path) -> rabbit_millrace_proxy:get(User, VHost, Sidecar, Path) end,
    {Status, Overview} = Get("/api/overview"),
    {_, Attention} = Get("/api/attention"),
    (own(Sidecar, User))#{vhost => VHost, path => rabbit_millrace_config:slug(VHost), status => Status,
                          overview => Overview, attention => Attention}.

%% What the node knows of its sidecar. The log may name other users, so it is for those who may see
%% nodes.
own(Sidecar, #user{tags = Tags}) ->
    Keys = [state, pid, since, restarts, starts_at],
    case lists:member(administrator, Tags) orelse lists:member(monitoring, Tags) of
        true ->
            Tail = lists:reverse(maps:get(tail, Sidecar, [])),
            (maps:with([last_exit | Keys], Sidecar))#{tail => Tail};
        false -> maps:with(Keys, Sidecar)
    end.
