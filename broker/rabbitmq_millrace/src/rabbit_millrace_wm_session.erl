%% Sessions of browsers. POST /api/millrace-session begins one for the user of RabbitMQ's own UI.
%% The proxy passes requests of Millrace's sign-in page to sign_in and sign_out.
-module(rabbit_millrace_wm_session).

-export([init/2, sign_in/3, sign_out/1]).

-define(MAX_BODY, 65536).

init(Req, State) ->
    case cowboy_req:method(Req) of
        <<"POST">> -> {ok, begin_session(Req), State};
        <<"DELETE">> -> {ok, sign_out(Req), State};
        _ -> {ok, rabbit_millrace_reply:problem(405, "only POST and DELETE are understood here", Req), State}
    end.

begin_session(Req0) ->
    case rabbit_millrace_auth:authenticate(Req0) of
        {ok, _User, Req} -> cowboy_req:reply(204, with_cookie(Req));
        {none, Req} -> rabbit_millrace_reply:problem(401, "sign in with the header Authorization", Req);
        {replied, Req} -> Req
    end.

with_cookie(Req) -> rabbit_millrace_auth:set_cookie(cowboy_req:header(<<"authorization">>, Req), Req).

%% A name and a password from Millrace's sign-in page. Browsers send JSON to another site only after
%% asking it, so no other site can sign a user in.
sign_in(VHost, Sidecar, Req0) ->
    case {cowboy_req:header(<<"content-type">>, Req0, <<>>), read(Req0)} of
        {Type, {ok, Body, Req}} ->
            case binary:match(Type, <<"application/json">>) of
                nomatch -> rabbit_millrace_reply:problem(415, "a body must come as Content-Type: application/json", Req);
                _ -> sign_in_with(credentials(Body), VHost, Sidecar, Req)
            end;
        {_, too_large} -> rabbit_millrace_reply:problem(413, "the body is too large", Req0)
    end.

read(Req0) ->
    case cowboy_req:read_body(Req0, #{length => ?MAX_BODY}) of
        {ok, Body, Req} -> {ok, Body, Req};
        {more, _, _} -> too_large
    end.

credentials(Body) ->
    try rabbit_json:decode(Body) of
        #{<<"name">> := Name, <<"password">> := Password} when is_binary(Name), is_binary(Password) ->
            {ok, <<"Basic ", (base64:encode(iolist_to_binary([Name, ":", Password])))/binary>>};
        #{<<"token">> := Token} when is_binary(Token) -> {ok, <<"Bearer ", Token/binary>>};
        _ -> error
    catch _:_ -> error
    end.

sign_in_with(error, _VHost, _Sidecar, Req) ->
    rabbit_millrace_reply:problem(400, "the body must have either name and password, or a token", Req);
sign_in_with({ok, Authorization}, VHost, Sidecar, Req0) ->
    Headers = cowboy_req:headers(Req0),
    case rabbit_millrace_auth:authenticate(Req0#{headers := Headers#{<<"authorization">> => Authorization}}) of
        {replied, Req} -> Req;
        {ok, User, Req} ->
            case rabbit_millrace_auth:may_use(User, VHost, Req) of
                false -> rabbit_millrace_reply:problem(403, "the user may not use this virtual host", Req);
                true ->
                    {Status, Whoami} = rabbit_millrace_proxy:get(User, VHost, Sidecar, "/api/whoami"),
                    welcome(Status, Whoami, Req)
            end
    end.

welcome(200, Whoami, Req) -> rabbit_millrace_reply:json(200, Whoami, with_cookie(Req));
welcome(_, _, Req) -> rabbit_millrace_reply:problem(502, "the sidecar of this node does not answer", Req).

sign_out(Req) ->
    case rabbit_millrace_auth:session_cookie(Req) of
        undefined -> ok;
        Cookie -> rabbit_millrace_sessions:end_session(Cookie)
    end,
    cowboy_req:reply(204, rabbit_millrace_auth:clear_cookie(Req)).
