%% The broker user of the sidecars. All sidecars of a cluster use the same one, because they trust
%% what it writes into the journal. Its password exists in the memory of the nodes only: the node
%% that starts first creates it, under a lock of the cluster, and the other nodes ask for it.
%%
%% Secrets are kept in funs, so that no crash report prints them.
-module(rabbit_millrace_user).
-behaviour(gen_server).
-include_lib("kernel/include/logger.hrl").

-export([start_link/0, prepare/1, may_use/1, password/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(ACTOR, <<"rabbitmq_millrace">>).
-define(BACKEND, rabbit_auth_backend_internal).
-define(CHECK_EVERY, 5000).
-define(ASK_TIMEOUT, 3000).
-define(CALL_TIMEOUT, 30000).

%% millrace_plugin marks users that this plugin created: it never changes the password of another.
-define(MARK, millrace_plugin).
-define(TAGS, [policymaker, monitoring, impersonator, ?MARK]).

%% The permissions of a sidecar: see docs/permissions.md.
-define(NAMES, "scheduled_jobs|retries|dead_jobs|heartbeats|job_metrics|job_metrics_rollups|job_journal").
-define(OWN, <<"^(jobs\\..*|queue\\..*|amq\\.gen.*|" ?NAMES ")$">>).
-define(WRITE, "jobs\\..*|queue\\..*|amq\\.(gen.*|default)|" ?NAMES).

start_link() -> gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Gives the user its permissions in a virtual host. Returns {ok, Password}, as a fun, or
%% {error, Reason} with a text.
prepare(VHost) -> gen_server:call(?MODULE, {prepare, VHost}, ?CALL_TIMEOUT).

%% Reports whether the user has permissions in a virtual host. They end with the virtual host, also
%% if it is created again.
may_use(VHost) ->
    try ?BACKEND:list_user_vhost_permissions(rabbit_millrace_config:user(), VHost) of
        Found -> Found =/= []
    catch _:_ -> true % the user or the virtual host has been deleted, or the database cannot be read
    end.

%% For the other nodes: the password, or undefined.
password() -> gen_server:call(?MODULE, password, ?ASK_TIMEOUT).

init([]) ->
    erlang:send_after(?CHECK_EVERY, self(), check),
    {ok, undefined}.

handle_call(password, _From, undefined) -> {reply, undefined, undefined};
handle_call(password, _From, Secret) -> {reply, Secret(), Secret};
handle_call({prepare, VHost}, _From, Secret0) ->
    try
        Secret = ensure(Secret0),
        User = rabbit_millrace_config:user(),
        ok = ?BACKEND:set_permissions(User, VHost, ?OWN, write(), ?OWN, ?ACTOR),
        {reply, {ok, Secret}, Secret}
    catch
        throw:{refused, Reason} -> {reply, {error, Reason}, undefined};
        Class:Reason ->
            Text = io_lib:format("the broker user of the sidecars cannot be prepared: ~tp ~tp",
                                 [Class, Reason]),
            {reply, {error, unicode:characters_to_binary(Text)}, Secret0}
    end.

handle_cast(_Request, Secret) -> {noreply, Secret}.

handle_info(check, Secret) ->
    erlang:send_after(?CHECK_EVERY, self(), check),
    {noreply, check(Secret)};
handle_info(_Message, Secret) ->
    {noreply, Secret}.

%% Sidecars may write to the exchanges to which they deliver messages.
write() ->
    More = case rabbit_millrace_config:deliver_to() of
        undefined -> "";
        To -> ["|(?:", To, ")"]
    end,
    unicode:characters_to_binary(["^(" ?WRITE, More, ")?$"]).

%% An administrator may change the password or delete the user, and two halves of a cluster may
%% each have chosen a password. The sidecars start again with one that is valid.
check(undefined) -> undefined;
check(Secret) ->
    try is_valid(Secret()) of
        true -> Secret;
        false ->
            ?LOG_WARNING("Millrace: the password of the broker user ~ts has changed; "
                         "the sidecars start again with a new one", [rabbit_millrace_config:user()]),
            rabbit_millrace_vhosts:restart_sidecars(),
            undefined
    catch _:_ -> Secret % the user database cannot be read now
    end.

ensure(undefined) ->
    User = rabbit_millrace_config:user(),
    check_backend(),
    case global:trans({?MODULE, self()}, fun() -> obtain(User) end) of
        {refused, _} = Refused -> throw(Refused);
        Password -> fun() -> Password end
    end;
ensure(Secret) ->
    case is_valid(Secret()) of
        true -> Secret;
        false -> ensure(undefined)
    end.

check_backend() ->
    case lists:member(?BACKEND, lists:flatten([backends(B) || B <- application:get_env(rabbit, auth_backends, [])])) of
        true -> ok;
        false ->
            throw({refused, <<"auth_backends does not name the internal database of users, so the sidecars "
                              "cannot sign in. Add it to rabbitmq.conf: auth_backends.2 = internal">>})
    end.

backends({Authentication, Authorization}) -> [backends(Authentication), backends(Authorization)];
backends(Backend) -> Backend.

%% Runs under the lock.
obtain(User) ->
    case [P || P <- ask_others(), is_valid_soon(P, 10)] of
        [P | _] -> P;
        [] -> create(User)
    end.

ask_others() ->
    {Answers, _} = rpc:multicall(nodes(), ?MODULE, password, [], ?ASK_TIMEOUT),
    [P || P <- Answers, is_binary(P)].

create(User) ->
    Password = base64:encode(crypto:strong_rand_bytes(24)),
    case ?BACKEND:lookup_user(User) of
        {error, not_found} ->
            written(?BACKEND:add_user(User, Password, ?ACTOR), User, Password);
        {ok, Found} ->
            case lists:member(?MARK, internal_user:get_tags(Found)) of
                true -> written(?BACKEND:change_password(User, Password, ?ACTOR), User, Password);
                false ->
                    {refused, iolist_to_binary(
                        ["the broker user ", User, " exists already, and this plugin did not create it. "
                         "Delete that user, or set millrace.user to another name"])}
            end
    end.

written(ok, User, Password) ->
    ok = ?BACKEND:set_tags(User, ?TAGS, ?ACTOR),
    Password;
written(Fault, User, _Password) ->
    {refused, unicode:characters_to_binary(
        io_lib:format("the broker user ~ts cannot be created: ~tp", [User, Fault]))}.

%% This node may read the database a moment later than the node that has written it.
is_valid_soon(Password, Tries) ->
    case is_valid(Password) of
        false when Tries > 1 ->
            timer:sleep(100),
            is_valid_soon(Password, Tries - 1);
        Valid -> Valid
    end.

is_valid(Password) ->
    case ?BACKEND:user_login_authentication(rabbit_millrace_config:user(), [{password, Password}]) of
        {ok, _} -> true;
        _ -> false
    end.
