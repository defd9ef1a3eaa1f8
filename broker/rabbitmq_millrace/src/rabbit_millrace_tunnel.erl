%% WebSockets: asks the sidecar to switch protocols, and then passes bytes both ways.
-module(rabbit_millrace_tunnel).

-export([upgrade/4, takeover/7]).

-define(HEAD_TIMEOUT, 10000).

upgrade(Req, Env, _Handler, {User, VHost, #{socket := Path} = Sidecar}) ->
    case rabbit_millrace_http:connect(Path) of
        {ok, Socket} -> switch(Socket, User, VHost, Sidecar, Req, Env);
        {error, _} ->
            {ok, rabbit_millrace_reply:problem(502, "the sidecar of this node does not answer", Req), Env}
    end.

switch(Socket, User, VHost, Sidecar, #{pid := Pid, streamid := Stream} = Req, Env) ->
    Headers = rabbit_millrace_proxy:request_headers(User, Sidecar, <<"GET">>, Req),
    ok = rabbit_millrace_http:send_head(Socket, cowboy_req:method(Req), rabbit_millrace_proxy:target(Req),
                                        [{"connection", "Upgrade"}, {"upgrade", "websocket"} | Headers]),
    case rabbit_millrace_http:answer(Socket, ?HEAD_TIMEOUT) of
        {ok, 101, Found} ->
            ok = gen_tcp:controlling_process(Socket, Pid),
            Pid ! {{Pid, Stream}, {switch_protocol, Found#{<<"connection">> => <<"Upgrade">>}, ?MODULE, {Socket, VHost, Req}}},
            {ok, Req, Env};
        {ok, Status, Found} ->
            Body = rabbit_millrace_http:read_all(Socket, Found),
            gen_tcp:close(Socket),
            Kept = maps:without([<<"content-length">>], rabbit_millrace_proxy:response_headers(Found)),
            {ok, cowboy_req:reply(Status, Kept, Body, Req), Env};
        {error, _} ->
            gen_tcp:close(Socket),
            {ok, rabbit_millrace_reply:problem(502, "the sidecar of this node does not answer", Req), Env}
    end.

%% Cowboy calls this in the process of the connection.
takeover(_Parent, _Ref, Client, Transport, _Opts, Buffer, {Sidecar, VHost, Req}) ->
    rabbit_millrace_auth:watch(Sidecar, VHost, Req),
    ok = gen_tcp:send(Sidecar, Buffer),
    _ = inet:setopts(Sidecar, [{active, once}]),
    _ = Transport:setopts(Client, [{active, once}]),
    loop(Client, Transport, Sidecar).

loop(Client, Transport, Sidecar) ->
    receive
        {tcp, Sidecar, Data} ->
            sent(Transport:send(Client, Data), fun() -> inet:setopts(Sidecar, [{active, once}]) end,
                 Client, Transport, Sidecar);
        {Kind, Client, Data} when Kind =:= tcp; Kind =:= ssl ->
            sent(gen_tcp:send(Sidecar, Data), fun() -> Transport:setopts(Client, [{active, once}]) end,
                 Client, Transport, Sidecar);
        {Closed, _} when Closed =:= tcp_closed; Closed =:= ssl_closed -> done(Client, Transport, Sidecar);
        {Error, _, _} when Error =:= tcp_error; Error =:= ssl_error -> done(Client, Transport, Sidecar);
        _ -> loop(Client, Transport, Sidecar)
    end.

sent(ok, Continue, Client, Transport, Sidecar) ->
    _ = Continue(),
    loop(Client, Transport, Sidecar);
sent(_, _Continue, Client, Transport, Sidecar) -> done(Client, Transport, Sidecar).

-spec done(any(), module(), any()) -> no_return().
done(Client, Transport, Sidecar) ->
    _ = Transport:close(Client),
    gen_tcp:close(Sidecar),
    exit(normal).
