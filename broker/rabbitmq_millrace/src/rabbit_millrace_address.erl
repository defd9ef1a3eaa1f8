%% Where the sidecars reach this node: a listener without TLS if there is one, or else one with TLS,
%% under a name that its certificate has. The settings count, not the listeners that are open: when a
%% node starts, plugins start before listeners do.
-module(rabbit_millrace_address).

-export([amqp_url/1, management_url/0, trusted/0]).

-define(AMQP_PORT, 5672).
-define(MANAGEMENT_PORT, 15672).
-define(MANAGEMENT_TLS_PORT, 15671).

%% What to do if the listener with TLS cannot be used.
-define(PLAIN_AMQP, "add an AMQP listener without TLS that only this machine can reach: "
                    "listeners.tcp.local = 127.0.0.1:5672").
-define(PLAIN_MANAGEMENT, "add a listener of the management API without TLS that only this machine can "
                          "reach: management.tcp.ip = 127.0.0.1 and management.tcp.port = 15672").

%% Returns {ok, URL} or {error, Reason} with a text.
amqp_url(VHost) ->
    case amqp_listener() of
        {plain, Bound, Port} -> {ok, url("amqp", local(Bound), Port, ["/", uri_string:quote(VHost)])};
        {tls, Bound, Port, Options} ->
            case rabbit_millrace_certificate:host(Bound, Options) of
                {ok, Host} -> {ok, url("amqps", Host, Port, ["/", uri_string:quote(VHost)])};
                {error, Why} -> {error, ["RabbitMQ has only AMQP listeners with TLS, and ", Why, "; or ", ?PLAIN_AMQP]}
            end;
        none -> {error, ["RabbitMQ has no AMQP listener: ", ?PLAIN_AMQP]}
    end.

amqp_listener() ->
    case application:get_env(rabbit, tcp_listeners, [?AMQP_PORT]) of
        [First | _] -> {Bound, Port} = bound(First), {plain, Bound, Port};
        [] ->
            case application:get_env(rabbit, ssl_listeners, []) of
                [First | _] -> {Bound, Port} = bound(First), {tls, Bound, Port, ssl_options()};
                [] -> none
            end
    end.

bound(Port) when is_integer(Port) -> {"auto", Port};
bound({Host, Port}) -> {Host, Port};
bound({Host, Port, _Family}) -> {Host, Port}.

ssl_options() -> application:get_env(rabbit, ssl_options, []).

%% The management API, as for amqp_url.
management_url() ->
    case management_listener() of
        {plain, Bound, Port} -> {ok, url("http", local(Bound), Port, rabbit_mgmt_util:get_path_prefix())};
        {tls, Bound, Port, Options} ->
            case rabbit_millrace_certificate:host(Bound, Options) of
                {ok, Host} -> {ok, url("https", Host, Port, rabbit_mgmt_util:get_path_prefix())};
                {error, Why} -> {error, ["the management API has only listeners with TLS, and ", Why, "; or ", ?PLAIN_MANAGEMENT]}
            end
    end.

management_listener() ->
    Get = fun(Key) -> application:get_env(rabbitmq_management, Key, []) end,
    case {Get(listener), Get(tcp_config), Get(ssl_config)} of
        {[], [], [_ | _] = Tls} -> {tls, address(Tls), port(Tls, ?MANAGEMENT_TLS_PORT), tls_options(Tls)};
        {[], Tcp, _} -> {plain, address(Tcp), port(Tcp, ?MANAGEMENT_PORT)};
        {Old, _, _} ->
            case proplists:get_value(ssl, Old, false) of
                true -> {tls, address(Old), port(Old, ?MANAGEMENT_PORT), tls_options(proplists:get_value(ssl_opts, Old, []))};
                false -> {plain, address(Old), port(Old, ?MANAGEMENT_PORT)}
            end
    end.

address(Config) -> proplists:get_value(ip, Config, "auto").

port(Config, Default) -> proplists:get_value(port, Config, Default).

%% A listener of the management API without a certificate of its own has that of AMQP.
tls_options(Options) ->
    case proplists:is_defined(certfile, Options) of
        true -> Options;
        false -> ssl_options()
    end.

%% The certificates that the sidecars trust besides those in the system's folder of certificates, as
%% PEM: those of the listeners that they use, of the authorities in RabbitMQ's settings, and of the
%% file that RabbitMQ's environment names. Empty without TLS.
trusted() ->
    case [Options || {tls, _, _, Options} <- [amqp_listener(), management_listener()]] of
        [] -> <<>>;
        Used ->
            Set = [proplists:get_value(Key, Options) || Options <- Used, Key <- [cacertfile, certfile]],
            Files = [File || File <- [os:getenv("SSL_CERT_FILE", undefined) | Set], File =/= undefined],
            rabbit_millrace_certificate:bundle(lists:usort(Files))
    end.

url(Scheme, Host, Port, Path) -> lists:flatten(io_lib:format("~ts://~ts:~b~ts", [Scheme, bracketed(Host), Port, Path])).

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
