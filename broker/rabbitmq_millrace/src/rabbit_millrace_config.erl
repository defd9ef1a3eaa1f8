%% The plugin's settings, and what it needs to know of RabbitMQ's.
-module(rabbit_millrace_config).

-export([mode/0, url/0, user/0, sidecar/0, sidecar_config/0, deliver_to/0, vhosts/0]).
-export([tls_host/0, base_path/0, path/1, slug/1, state_dir/0, cluster_size/0]).

-define(APP, rabbitmq_millrace).

mode() -> env(mode).

url() -> env(url).

user() -> env(user).

sidecar() -> env(sidecar).

sidecar_config() -> env(sidecar_config).

%% A regular expression for the exchanges to which sidecars deliver messages, or undefined.
deliver_to() ->
    case env(deliver_to) of
        "" -> undefined;
        "none" -> undefined;
        To -> To
    end.

%% The name under which sidecars connect with TLS, or undefined.
tls_host() -> env(tls_host).

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

%% How many nodes the settings announce: those of classic_config, or target_cluster_size_hint.
cluster_size() ->
    Formation = application:get_env(rabbit, cluster_formation, []),
    Named = case application:get_env(rabbit, cluster_nodes, []) of
        {Nodes, _} when is_list(Nodes) -> length(Nodes);
        Nodes when is_list(Nodes) -> length(Nodes);
        _ -> 0
    end,
    lists:max([1, Named, proplists:get_value(target_cluster_size_hint, Formation, 1)]).
