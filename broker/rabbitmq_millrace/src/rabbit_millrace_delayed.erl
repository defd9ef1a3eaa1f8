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

-rabbit_boot_step({?MODULE,
                   [{description, "Millrace: exchange type x-delayed-message"},
                    {mfa, {rabbit_registry, register, [exchange, ?TYPE, ?MODULE]}},
                    {cleanup, {rabbit_registry, unregister, [exchange, ?TYPE]}},
                    {requires, rabbit_registry},
                    {enables, recovery}]}).

description() -> [{description, <<"Delayed messages, which Millrace publishes when they are due">>}].

serialise_events() -> false.

info(_Exchange) -> [].

info(_Exchange, _Items) -> [].

%% RabbitMQ 3.10 to 3.12.
route(X, #delivery{message = #basic_message{routing_keys = Keys, content = Content}} = Delivery) ->
    #content{properties = P} = rabbit_binary_parser:ensure_content_decoded(Content),
    route(X, P#'P_basic'.message_id, header(P#'P_basic'.headers), Keys, #{}, fun(Type) -> Type:route(X, Delivery) end);
route(X, Message) -> route(X, Message, #{}).

%% RabbitMQ 3.13 and later.
route(X, Message, Options) ->
    Id = case mc:message_id(Message) of
        {_, Text} -> Text;
        undefined -> undefined
    end,
    route(X, Id, mc:x_header(<<"x-delay">>, Message), mc:routing_keys(Message), Options,
          fun(Type) ->
              case erlang:function_exported(Type, route, 3) of
                  true -> Type:route(X, Message, Options);
                  false -> Type:route(X, Message)
              end
          end).

header(undefined) -> undefined;
header(Headers) -> rabbit_misc:table_lookup(Headers, <<"x-delay">>).

route(#exchange{name = #resource{virtual_host = VHost}} = X, Id, _Delay, Keys, Options, Route) ->
    case rabbit_millrace_interceptor:take_record() of
        Jid when is_binary(Jid), Jid =:= Id -> [existing_stream(VHost)];
        _ -> bindings(X, Keys, Options, Route)
    end.

%% A message for a stream that does not exist would be confirmed and lost.
existing_stream(VHost) ->
    Stream = rabbit_millrace_record:stream(VHost),
    case rabbit_amqqueue:exists(Stream) of
        true -> Stream;
        false -> no_stream(VHost)
    end.

no_stream(VHost) ->
    rabbit_misc:protocol_error(precondition_failed,
                               "no Millrace sidecar serves virtual host '~ts' (it has no stream scheduled_jobs): "
                               "add it to millrace.vhosts, or run a sidecar for it", [VHost]).

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

validate(#exchange{name = #resource{virtual_host = VHost}, arguments = Args} = X) ->
    case rabbit_misc:table_lookup(Args, <<"x-delayed-type">>) of
        {_, Type} when is_binary(Type), Type =/= ?TYPE ->
            _ = rabbit_exchange:check_type(Type),
            ok = (inner(X)):validate(X),
            _ = declared_by_client() andalso existing_stream(VHost),
            ok;
        _ ->
            rabbit_misc:protocol_error(precondition_failed,
                                       "the argument x-delayed-type must name an exchange type other than x-delayed-message", [])
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
