%% The plugin's settings, and what it needs to know of RabbitMQ's.
-module(rabbit_millrace_config).

-export([mode/0, url/0, user/0, sidecar/0, sidecar_config/0, vhosts/0]).
-export([base_path/0, path/1, slug/1, state_dir/0, amqp_address/0, management_url/0, cluster_size/0]).

-define(APP, rabbitmq_millrace).
-define(DEFAULT_AMQP_PORT, 5672).
-define(DEFAULT_MANAGEMENT_PORT, 15672).

mode() -> env(mode).

url() -> env(url).

user() -> env(user).

sidecar() -> env(sidecar).

sidecar_config() -> env(sidecar_config).

%% The virtual hosts that the settings name.
vhosts() -> env(vhosts).

env(Key) ->
    {ok, Value} = application:get_env(?APP, Key),
    Value.

%% The path of the proxy on the management port.
base_path() -> iolist_to_binary([rabbit_mgmt_util:get_path_prefix(), "/api/millrace"]).

%% The prefix of all paths of a virtual host's sidecar.
path(VHost) -> iolist_to_binary([base_path(), "/", slug(VHost)]).

%% A virtual host's name as one segment of a path. Bytes other than letters, digits, "_" and "-" are
%% written as "~" and two hexadecimal digits, because a sidecar's prefix has no "%".
slug(VHost) -> iolist_to_binary([slug_byte(B) || B <- binary_to_list(VHost)]).

slug_byte(B) when B >= $a, B =< $z; B >= $A, B =< $Z; B >= $0, B =< $9; B =:= $_; B =:= $- -> B;
slug_byte(B) -> io_lib:format("~~~2.16.0B", [B]).

%% The folder of the views and sockets. It is below the node's data, and only its user can read it.
state_dir() -> filename:join(data_dir(), "millrace").

%% rabbit:data_dir/0 exists since RabbitMQ 3.12. Before, the data were in Mnesia's folder.
data_dir() ->
    _ = code:ensure_loaded(rabbit),
    case erlang:function_exported(rabbit, data_dir, 0) of
        true -> rabbit:data_dir();
        false -> rabbit_mnesia:dir()
    end.

%% The address of a listener without TLS, for the sidecars on this machine. The settings count: when
%% a node starts, plugins start before listeners do.
amqp_address() ->
    case application:get_env(rabbit, tcp_listeners, [?DEFAULT_AMQP_PORT]) of
        [{Host, Port} | _] -> {ok, local(Host), Port};
        [Port | _] when is_integer(Port) -> {ok, "127.0.0.1", Port};
        [] ->
            {error, "RabbitMQ has no AMQP listener without TLS. Add one that only this machine can "
                    "reach to rabbitmq.conf: listeners.tcp.local = 127.0.0.1:5672"}
    end.

%% The management API as the sidecars reach it, or undefined if it has TLS listeners only.
management_url() ->
    Get = fun(Key) -> application:get_env(rabbitmq_management, Key, []) end,
    Port = fun(Config) -> proplists:get_value(port, Config) end,
    case {Get(listener), Get(tcp_config), Get(ssl_config)} of
        {[], [], [_ | _]} -> undefined;
        {[], Tcp, _} -> management_url(Tcp, Port(Tcp));
        {Old, _, _} ->
            case proplists:get_value(ssl, Old, false) of
                true -> undefined;
                false -> management_url(Old, Port(Old))
            end
    end.

management_url(Config, undefined) -> management_url(Config, ?DEFAULT_MANAGEMENT_PORT);
management_url(Config, Port) ->
    Host = local(proplists:get_value(ip, Config, "127.0.0.1")),
    lists:flatten(io_lib:format("http://~ts:~b~ts",
                                [bracketed(Host), Port, rabbit_mgmt_util:get_path_prefix()])).

%% How many nodes the settings announce: those of classic_config, or target_cluster_size_hint.
cluster_size() ->
    Formation = application:get_env(rabbit, cluster_formation, []),
    Named = case application:get_env(rabbit, cluster_nodes, []) of
        {Nodes, _} when is_list(Nodes) -> length(Nodes);
        Nodes when is_list(Nodes) -> length(Nodes);
        _ -> 0
    end,
    lists:max([1, Named, proplists:get_value(target_cluster_size_hint, Formation, 1)]).

%% An address on which this machine reaches a listener.
local(Host) when is_tuple(Host) -> local(inet:ntoa(Host));
local("0.0.0.0") -> "127.0.0.1";
local("::") -> "127.0.0.1";
local("auto") -> "127.0.0.1";
local(Host) -> Host.

bracketed(Host) ->
    case lists:member($:, Host) of
        true -> "[" ++ Host ++ "]";
        false -> Host
    end.
