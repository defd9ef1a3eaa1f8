%% Who sends a request. RabbitMQ authenticates the user, as for its own API; the sidecar gets the
%% name and the tags in a header that is signed, and never sees a password.
-module(rabbit_millrace_auth).
-include_lib("rabbit_common/include/rabbit.hrl").

-export([authenticate/1, with_session/1, may_use/3, signature/5, watch/3]).
-export([set_cookie/2, clear_cookie/1, session_cookie/1]).

%% As in RabbitMQ 3.10 to 4.3.
-record(context, {user, password = none, impl}).

-define(COOKIE, <<"millrace_plugin">>).
-define(RECHECK_EVERY, 30000).
-define(MANAGEMENT_TAGS, [administrator, monitoring, policymaker, management]).

%% Returns {ok, User, Req}, {none, Req} if the request names no user, or {replied, Req} if it was
%% answered because the user is not authenticated.
authenticate(Req0) ->
    Req1 = with_session(Req0),
    case cowboy_req:header(<<"authorization">>, Req1) of
        undefined -> {none, Req1};
        _ ->
            case rabbit_mgmt_util:is_authorized(Req1, #context{}) of
                {true, Req, #context{user = User}} -> {ok, User, Req};
                {stop, Req, _} -> {replied, Req};
                {{false, _}, Req, _} ->
                    {replied, rabbit_millrace_reply:problem(401, "invalid user name or password", Req)}
            end
    end.

%% Adds the header Authorization that the session of a browser stands for.
with_session(Req) ->
    case {cowboy_req:header(<<"authorization">>, Req), session_cookie(Req)} of
        {undefined, Cookie} when Cookie =/= undefined ->
            case rabbit_millrace_sessions:find(Cookie) of
                undefined -> Req;
                Authorization ->
                    Headers = cowboy_req:headers(Req),
                    Req#{headers := Headers#{<<"authorization">> => Authorization}}
            end;
        _ -> Req
    end.

session_cookie(Req) ->
    try cowboy_req:parse_cookies(Req) of
        Cookies -> proplists:get_value(?COOKIE, Cookies)
    catch _:_ -> undefined
    end.

%% Begins a session for the header Authorization of a request that was authenticated.
set_cookie(Authorization, Req) ->
    {Cookie, Lasts} = rabbit_millrace_sessions:begin_session(Authorization),
    cookie(Cookie, Lasts, Req).

clear_cookie(Req) -> cookie(<<>>, 0, Req).

cookie(Value, Lasts, Req) ->
    Proto = cowboy_req:header(<<"x-forwarded-proto">>, Req, cowboy_req:scheme(Req)),
    Secure = case string:lowercase(Proto) of <<"https">> -> "; Secure"; _ -> "" end,
    Path = [rabbit_millrace_config:base_path(), "/"],
    Line = [?COOKIE, "=", Value, "; Path=", Path, "; Max-Age=", integer_to_list(Lasts), "; HttpOnly; SameSite=Strict", Secure],
    Req#{resp_cookies => #{?COOKIE => Line}}.

%% Reports whether a user may use a virtual host. Administrators see every virtual host, as in
%% RabbitMQ's own API.
may_use(#user{tags = Tags} = User, VHost, Req) ->
    lists:member(administrator, Tags) orelse has_access(User, VHost, peer(Req)).

has_access(User, VHost, Address) ->
    try rabbit_access_control:check_vhost_access(User, VHost, {ip, Address}, #{}) of
        ok -> true;
        _ -> false
    catch _:_ -> false
    end.

peer(Req) ->
    {Address, _} = cowboy_req:peer(Req),
    Address.

%% The value of the header X-Millrace-User for a request: see docs/api-access.md. Key is the
%% sidecar's.
signature(#user{username = Name, tags = Tags}, Key, Time, Method, Target) ->
    Parts = [integer_to_binary(Time), base64:encode(Name), base64:encode(iolist_to_binary(lists:join(",", [tag(T) || T <- Tags])))],
    Signed = lists:join("\n", ["millrace-user-1", Method, Target | Parts]),
    Sum = binary:encode_hex(crypto:mac(hmac, sha256, Key, Signed)),
    iolist_to_binary(lists:join(".", ["1" | Parts] ++ [string:lowercase(Sum)])).

tag(Tag) when is_atom(Tag) -> atom_to_binary(Tag, utf8);
tag(Tag) -> Tag.

%% Closes a connection to the sidecar when the user loses access, such as events that a browser
%% receives for hours. Must be called by the process that answers: the watch ends with it.
watch(Socket, VHost, Req) ->
    Owner = self(),
    Authorization = cowboy_req:header(<<"authorization">>, Req),
    Peer = peer(Req),
    Check = fun() -> still(Authorization, VHost, Peer) end,
    spawn(fun() -> watching(monitor(process, Owner), Socket, Check) end).

watching(Monitor, Socket, Check) ->
    receive {'DOWN', Monitor, process, _, _} -> ok
    after ?RECHECK_EVERY ->
        case Check() of
            true -> watching(Monitor, Socket, Check);
            false -> gen_tcp:shutdown(Socket, read_write)
        end
    end.

still(undefined, _VHost, _Peer) -> true; % no user was named, and the sidecar decided without one
still(Authorization, VHost, Peer) ->
    try
        {ok, #user{tags = Tags} = User} = log_in(cow_http_hd:parse_authorization(Authorization)),
        lists:member(administrator, Tags) orelse
            ([] =/= [T || T <- Tags, lists:member(T, ?MANAGEMENT_TAGS)] andalso has_access(User, VHost, Peer))
    catch _:_ -> false
    end.

log_in({basic, Name, Password}) -> rabbit_access_control:check_user_pass_login(Name, Password);
log_in({bearer, Token}) -> rabbit_access_control:check_user_pass_login(<<>>, Token).
