%% The exchange type x-delayed-message. It leads a delayed message to the stream scheduled_jobs, and
%% all others where its argument x-delayed-type says.
-module(rabbit_millrace_delayed).
-behaviour(rabbit_exchange_type).
-include_lib("rabbit_common/include/rabbit.hrl").
-include_lib("rabbit_common/include/rabbit_framing.hrl").

-export([description/0, serialise_events/0, route/2, route/3, validate/1, validate_binding/2]).
-export([create/2, delete/2, delete/3, policy_changed/2, add_binding/3, remove_bindings/3]).
-export([assert_args_equivalence/2, info/1, info/2, inner/1]).

-define(TYPE, <<"x-delayed-message">>).

%% How long a declaration waits for the sidecar of a virtual host that had none.
-define(STREAM_TIMEOUT, 20000).
-define(LOOK_EVERY, 100).

%% The processes of classic and quorum queues start in these modules.
-define(IS_QUEUE(Module), Module =:= rabbit_prequeue; Module =:= rabbit_amqqueue_process; Module =:= ra_server_proc).

-rabbit_boot_step({?MODULE,
                   [{description, "Millrace: exchange type x-delayed-message"},
                    {mfa, {rabbit_registry, register, [exchange, ?TYPE, ?MODULE]}},
                    {cleanup, {rabbit_registry, unregister, [exchange, ?TYPE]}},
                    {requires, rabbit_registry},
                    {enables, recovery}]}).

description() -> [{description, <<"Delayed messages, which Millrace publishes when they are due">>}].

serialise_events() -> false.

info(X) -> info(X, [messages_delayed]).

%% The item has the name that the archived rabbitmq_delayed_message_exchange gave it.
info(X, Items) ->
    case lists:member(messages_delayed, Items) andalso rabbit_millrace_counts:delayed(X) of
        Count when is_integer(Count) -> [{messages_delayed, Count}];
        _ -> []
    end.

%% RabbitMQ 3.10 to 3.12.
route(X, #delivery{message = #basic_message{routing_keys = [Key | _] = Keys, content = Content}} = Delivery) ->
    #content{properties = P} = Decoded = rabbit_binary_parser:ensure_content_decoded(Content),
    case recorded(P#'P_basic'.message_id) of
        true -> [existing_stream(X)];
        false ->
            Undelayed = fun() -> bindings(X, Keys, #{}, fun(Type) -> Type:route(X, Delivery) end) end,
            delayed(X, header(P#'P_basic'.headers), Key, fun() -> Decoded end, Undelayed)
    end;
route(X, Message) -> route(X, Message, #{}).

%% RabbitMQ 3.13 and later.
route(X, Message, Options) ->
    case recorded(text(mc:message_id(Message))) of
        true -> [existing_stream(X)];
        false ->
            [Key | _] = Keys = mc:routing_keys(Message),
            Content = fun() -> mc:protocol_state(mc:convert(mc_amqpl, Message)) end,
            Undelayed = fun() -> bindings(X, Keys, Options, fun(Type) -> route_as(Type, X, Message, Options) end) end,
            delayed(X, mc:x_header(<<"x-delay">>, Message), Key, Content, Undelayed)
    end.

header(undefined) -> undefined;
header(Headers) -> rabbit_misc:table_lookup(Headers, <<"x-delay">>).

text({_Type, Text}) -> Text;
text(undefined) -> undefined.

route_as(Type, X, Message, Options) ->
    case erlang:function_exported(Type, route, 3) of
        true -> Type:route(X, Message, Options);
        false -> Type:route(X, Message)
    end.

%% Whether the message with this id is the record that the interceptor has made.
recorded(Id) ->
    Jid = rabbit_millrace_interceptor:take_record(),
    is_binary(Jid) andalso Jid =:= Id.

%% A message that no interceptor has seen.
delayed(X, Header, Key, Content, Undelayed) ->
    case rabbit_millrace_record:delay(Header) of
        Delay when is_integer(Delay), Delay > 0 -> hand_over(process_module(), X, Key, Content(), Delay, Undelayed);
        _ -> Undelayed()
    end.

%% The process of a queue must not wait. If a delayed message cannot be stored, a client gets an
%% error, and a dead letter of a queue with the strategy at-least-once has no route, so RabbitMQ
%% tries again. Other dead letters would be lost, and an exit would end the process of their queue:
%% they are not delayed.
hand_over(Process, X, Key, Content, Delay, Undelayed) ->
    case store(Process, X, Key, Content, Delay) of
        {ok, Destination} -> [Destination];
        {error, _} when ?IS_QUEUE(Process) -> Undelayed();
        {error, _} when Process =:= rabbit_fifo_dlx_worker -> [];
        {error, Text} -> refuse(Text)
    end.

store(Process, #exchange{name = #resource{virtual_host = VHost, name = Name}} = X, Key, Content, Delay) ->
    case {stream(X), rabbit_millrace_record:new(Name, Key, Content, Delay)} of
        {{ok, _}, {ok, _Jid, Record}} when ?IS_QUEUE(Process) ->
            rabbit_millrace_handover:store_later(VHost, Record);
        {{ok, _}, {ok, _Jid, Record}} -> rabbit_millrace_handover:store(VHost, Record);
        {{ok, _}, Error} -> Error;
        {Error, _} -> Error
    end.

%% The stream of the records. A message for a stream that does not exist would be confirmed, and
%% lost.
stream(#exchange{name = #resource{virtual_host = VHost}}) ->
    Stream = rabbit_millrace_record:stream(VHost),
    case rabbit_amqqueue:exists(Stream) of
        true -> {ok, Stream};
        false -> {error, ["no Millrace sidecar serves virtual host '", VHost, "' (it has no stream scheduled_jobs). ",
                          rabbit_millrace_exchanges:advice()]}
    end.

existing_stream(X) ->
    case stream(X) of
        {ok, Stream} -> Stream;
        {error, Text} -> refuse(Text)
    end.

refuse(Text) -> rabbit_misc:protocol_error(precondition_failed, "~ts", [Text]).

bindings(#exchange{name = Name} = X, Keys, Options, Route) ->
    case {inner(X), rabbit_millrace_topic:needed()} of
        %% From RabbitMQ 3.11 to 4.2, the type's own index has the bindings of the type direct only.
        {rabbit_exchange_type_direct, _} -> rabbit_router:match_routing_key(Name, Keys);
        {rabbit_exchange_type_topic, true} -> rabbit_millrace_topic:match(Name, Keys, Options);
        {Type, _} -> Route(Type)
    end.

%% The module of the type that x-delayed-type names.
inner(#exchange{arguments = Args}) ->
    {_, Type} = rabbit_misc:table_lookup(Args, <<"x-delayed-type">>),
    case rabbit_registry:binary_to_type(Type) of
        {error, not_found} -> rabbit_exchange_type_invalid;
        Name -> module(rabbit_registry:lookup_module(exchange, Name))
    end.

module({ok, Module}) -> Module;
module({error, not_found}) -> rabbit_exchange_type_invalid.

validate(#exchange{arguments = Args} = X) ->
    case rabbit_misc:table_lookup(Args, <<"x-delayed-type">>) of
        {_, Type} when is_binary(Type), Type =/= ?TYPE ->
            _ = rabbit_exchange:check_type(Type),
            ok = (inner(X)):validate(X),
            _ = declared_by_client() andalso served(X),
            ok;
        _ ->
            refuse("the argument x-delayed-type must name an exchange type other than x-delayed-message")
    end.

%% Waits until the virtual host has a sidecar, which creates the stream.
served(X) ->
    _ = rabbit_millrace_config:mode() =:= supervise andalso stream_within(?STREAM_TIMEOUT, X),
    existing_stream(X).

stream_within(Ms, #exchange{name = #resource{virtual_host = VHost}} = X) ->
    case stream(X) of
        {error, _} when Ms > 0 ->
            rabbit_millrace_vhosts:serve(VHost),
            timer:sleep(?LOOK_EVERY),
            stream_within(Ms - ?LOOK_EVERY, X);
        _ -> ok
    end.

%% Imported definitions are accepted before the virtual host has a sidecar.
declared_by_client() -> lists:member(process_module(), [rabbit_channel, rabbit_amqp_session, cowboy_stream_h]).

%% The module in which this process has started.
process_module() ->
    {Module, _, _} = proc_lib:translate_initial_call(self()),
    Module.

validate_binding(X, Binding) -> (inner(X)):validate_binding(X, Binding).

create(Serial, X) -> (inner(X)):create(Serial, X).

delete(Serial, X) -> (inner(X)):delete(Serial, X).

%% RabbitMQ 3.10 and 3.11.
delete(Serial, X, Bindings) -> (inner(X)):delete(Serial, X, Bindings).

policy_changed(Old, New) -> (inner(New)):policy_changed(Old, New).

add_binding(Serial, X, Binding) -> (inner(X)):add_binding(Serial, X, Binding).

remove_bindings(Serial, X, Bindings) -> (inner(X)):remove_bindings(Serial, X, Bindings).

assert_args_equivalence(X, Args) -> (inner(X)):assert_args_equivalence(X, Args).
