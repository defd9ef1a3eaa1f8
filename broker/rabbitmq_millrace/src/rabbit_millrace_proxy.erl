%% Passes requests below /api/millrace/VHOST/ on to the sidecar of that virtual host. This module
%% authenticates the user; the sidecar decides what the user may do. A request without a user is
%% passed on without one: the files of the web UI need no user.
-module(rabbit_millrace_proxy).

-export([init/2, target/1, request_headers/4, response_headers/1, get/4, sidecar/1]).

%% The sidecar's own limit of a body.
-define(MAX_BODY, 16 * 1024 * 1024).
-define(PIECE, 256 * 1024).

%% Headers that end here: those of this connection, and those by which the user has signed in.
-define(DROPPED, [<<"host">>, <<"connection">>, <<"keep-alive">>, <<"transfer-encoding">>, <<"te">>, <<"trailer">>,
                  <<"upgrade">>, <<"content-length">>, <<"expect">>, <<"x-forwarded-for">>, <<"x-forwarded-proto">>,
                  <<"authorization">>, <<"proxy-authorization">>, <<"cookie">>, <<"x-millrace-user">>]).

init(Req0, State) ->
    case sidecar(cowboy_req:path(Req0)) of
        start -> {ok, start_page(Req0), State};
        {error, Status, Reason} -> {ok, rabbit_millrace_reply:problem(Status, Reason, Req0), State};
        {ok, VHost, Sidecar, Path} -> init(VHost, Sidecar, Path, Req0, State)
    end.

init(VHost, Sidecar, Path, Req0, State) ->
    case {cowboy_req:method(Req0), Path} of
        {<<"POST">>, <<"/api/session">>} -> {ok, rabbit_millrace_wm_session:sign_in(VHost, Sidecar, Req0), State};
        {<<"DELETE">>, <<"/api/session">>} -> {ok, rabbit_millrace_wm_session:sign_out(Req0), State};
        _ ->
            case admit(VHost, Req0) of
                {ok, User, Req} -> forward(User, VHost, Sidecar, Req, State);
                {replied, Req} -> {ok, Req, State}
            end
    end.

%% There is no sidecar for the path without a virtual host. The tab lists them.
start_page(Req) ->
    cowboy_req:reply(302, #{<<"location">> => [rabbit_mgmt_util:get_path_prefix(), "/#/jobs"]}, Req).

%% Finds the sidecar that a path belongs to, and the rest of the path.
sidecar(Path) ->
    Base = rabbit_millrace_config:base_path(),
    Rest = binary:part(Path, byte_size(Base), byte_size(Path) - byte_size(Base)),
    case binary:split(Rest, <<"/">>, [global]) of
        [<<>>] -> start;
        [<<>>, <<>>] -> start;
        [<<>>, Slug | More] ->
            Found = [{V, S} || {V, S} <- rabbit_millrace_sidecar:list(), rabbit_millrace_config:slug(V) =:= Slug],
            found(Found, iolist_to_binary([["/", M] || M <- More]));
        _ -> found([], <<>>)
    end.

found([{VHost, #{socket := _, key := _} = Sidecar}], Path) -> {ok, VHost, Sidecar, Path};
found([_], _Path) -> {error, 503, "the sidecar of this virtual host does not run on this node: the tab Jobs says why"};
found([], _Path) -> {error, 404, "no sidecar serves this virtual host, or it does not exist"}.

%% Returns {ok, User, Req}, where User is undefined if the request names none.
admit(VHost, Req0) ->
    case rabbit_millrace_auth:authenticate(Req0) of
        {none, Req} -> {ok, undefined, Req};
        {replied, Req} -> {replied, Req};
        {ok, User, Req} ->
            case rabbit_millrace_auth:may_use(User, VHost, Req) of
                true -> {ok, User, Req};
                false -> {replied, rabbit_millrace_reply:problem(403, "the user may not use this virtual host", Req)}
            end
    end.

forward(User, VHost, Sidecar, Req, State) ->
    case cowboy_req:header(<<"upgrade">>, Req) of
        undefined -> {ok, pass(User, VHost, Sidecar, Req), State};
        _ -> {rabbit_millrace_tunnel, Req, {User, VHost, Sidecar}}
    end.

pass(User, VHost, #{socket := Path} = Sidecar, Req0) ->
    cowboy_req:cast({set_options, #{idle_timeout => infinity}}, Req0),
    case body(Req0) of
        too_large ->
            Reason = io_lib:format("the body is over ~b bytes, which is the most that is read", [?MAX_BODY]),
            rabbit_millrace_reply:problem(413, Reason, Req0);
        {ok, Length, First, Req} ->
            case rabbit_millrace_http:connect(Path) of
                {ok, Socket} -> exchange(Socket, User, VHost, Sidecar, Length, First, Req);
                {error, _} -> unreachable(Req)
            end
    end.

unreachable(Req) -> rabbit_millrace_reply:problem(502, "the sidecar of this node does not answer", Req).

%% Returns the length of the body, and what was read of it: all of it, if the length was not known.
body(Req) ->
    case {cowboy_req:has_body(Req), cowboy_req:body_length(Req)} of
        {false, _} -> {ok, none, {all, <<>>}, Req};
        {true, undefined} -> whole(Req, [], 0);
        {true, Length} when Length > ?MAX_BODY -> too_large;
        {true, Length} -> {ok, Length, none, Req}
    end.

whole(Req0, Read, Size) ->
    {Is, Data, Req} = cowboy_req:read_body(Req0, #{length => ?PIECE}),
    Sum = Size + byte_size(Data),
    case Is of
        _ when Sum > ?MAX_BODY -> too_large;
        more -> whole(Req, [Read, Data], Sum);
        ok -> {ok, Sum, {all, [Read, Data]}, Req}
    end.

exchange(Socket, User, VHost, Sidecar, Length, First, Req0) ->
    try
        Headers = request_headers(User, Sidecar, cowboy_req:method(Req0), Req0),
        Sized = case Length of none -> []; _ -> [{"content-length", integer_to_list(Length)}] end,
        ok = rabbit_millrace_http:send_head(Socket, cowboy_req:method(Req0), target(Req0),
                                            [{"connection", "close"} | Sized ++ Headers]),
        Req = send_body(Socket, First, Req0),
        case rabbit_millrace_http:answer(Socket, default) of
            {ok, Status, Found} -> reply(Socket, Status, Found, VHost, Req);
            {error, _} -> unreachable(Req)
        end
    after gen_tcp:close(Socket)
    end.

%% The sidecar may answer before it has read the body, and close the connection: then its answer
%% counts.
send_body(Socket, {all, Data}, Req) ->
    _ = gen_tcp:send(Socket, Data),
    Req;
send_body(Socket, none, Req0) ->
    case cowboy_req:read_body(Req0, #{length => ?PIECE}) of
        {more, Data, Req} ->
            _ = gen_tcp:send(Socket, Data),
            send_body(Socket, none, Req);
        {ok, Data, Req} ->
            _ = gen_tcp:send(Socket, Data),
            Req
    end.

reply(Socket, Status, Found, VHost, Req0) ->
    Headers = response_headers(Found),
    case Status =:= 204 orelse Status =:= 304 orelse cowboy_req:method(Req0) =:= <<"HEAD">> of
        true -> cowboy_req:reply(Status, Headers, Req0);
        false ->
            case is_events(Headers) of
                true -> rabbit_millrace_auth:watch(Socket, VHost, Req0);
                false -> ok
            end,
            Req = cowboy_req:stream_reply(Status, Headers, Req0),
            stream(Socket, Found, Req)
    end.

stream(Socket, State, Req) ->
    case rabbit_millrace_http:read(Socket, State) of
        {ok, Data, Next} ->
            cowboy_req:stream_body(Data, nofin, Req),
            stream(Socket, Next, Req);
        done ->
            cowboy_req:stream_body(<<>>, fin, Req),
            Req;
        {error, _} ->
            %% The client must not take a part for the whole. Cowboy would end the body properly.
            exit(maps:get(pid, Req), kill),
            Req
    end.

is_events(Headers) -> binary:match(maps:get(<<"content-type">>, Headers, <<>>), <<"text/event-stream">>) =/= nomatch.

%% Cowboy compresses answers, and would hold events back.
response_headers(Found) ->
    Headers = maps:without([<<"connection">>, <<"keep-alive">>, <<"transfer-encoding">>, <<"set-cookie">>], Found),
    case is_events(Headers) of
        true -> Headers#{<<"content-encoding">> => <<"identity">>};
        false -> Headers
    end.

%% The path and the query, as they were sent.
target(Req) ->
    case cowboy_req:qs(Req) of
        <<>> -> cowboy_req:path(Req);
        Query -> iolist_to_binary([cowboy_req:path(Req), "?", Query])
    end.

request_headers(User, Sidecar, Method, Req) ->
    {Peer, _} = cowboy_req:peer(Req),
    Kept = own_origin(maps:without(?DROPPED, cowboy_req:headers(Req)), Req),
    [{"x-forwarded-for", inet:ntoa(Peer)}, {"x-forwarded-proto", cowboy_req:scheme(Req)}
     | signed(User, Sidecar, Method, target(Req)) ++ maps:to_list(Kept)].

signed(undefined, _Sidecar, _Method, _Target) -> [];
signed(User, #{key := Key}, Method, Target) ->
    [{"x-millrace-user", rabbit_millrace_auth:signature(User, Key(), erlang:system_time(second), Method, Target)}].

%% The sidecar knows itself as localhost. A page of this host is a page of its own.
own_origin(#{<<"origin">> := Origin} = Headers, Req) ->
    Host = cowboy_req:header(<<"host">>, Req, <<>>),
    case binary:split(Origin, <<"://">>) of
        [_, Host] -> Headers#{<<"origin">> := <<"http://localhost">>};
        _ -> Headers
    end;
own_origin(Headers, _Req) -> Headers.

%% Reads a JSON document of a sidecar for a user.
get(User, VHost, #{socket := Socket} = Sidecar, Path) ->
    Target = iolist_to_binary([rabbit_millrace_config:path(VHost), Path]),
    rabbit_millrace_http:get(Socket, Target, signed(User, Sidecar, <<"GET">>, Target));
get(_User, _VHost, _Sidecar, _Path) -> {0, null}.
