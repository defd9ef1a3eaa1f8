%% Sees each message that a channel gets from a client, and replaces a delayed one by the record of
%% its job. So the channel itself stores and confirms the record.
-module(rabbit_millrace_interceptor).
-behaviour(rabbit_channel_interceptor).
-include_lib("rabbit_common/include/rabbit.hrl").
-include_lib("rabbit_common/include/rabbit_framing.hrl").

-export([description/0, init/1, intercept/3, applies_to/0, take_record/0]).

-rabbit_boot_step({?MODULE,
                   [{description, "Millrace: records of delayed messages"},
                    {mfa, {rabbit_registry, register, [channel_interceptor, <<"millrace-delayed">>, ?MODULE]}},
                    {cleanup, {rabbit_registry, unregister, [channel_interceptor, <<"millrace-delayed">>]}},
                    {requires, rabbit_registry},
                    {enables, recovery}]}).

-define(DIRECT_REPLY_TO, <<"amq.rabbitmq.reply-to">>).

description() -> [{description, <<"Millrace: stores delayed messages as scheduled jobs">>}].

%% RabbitMQ asks only to find two interceptors for the same method, and then closes every channel.
%% This one can run beside others. RabbitMQ calls each interceptor for all methods.
applies_to() -> [].

init(Channel) -> rabbit_channel:get_vhost(Channel).

%% The properties are decoded in any case: the channel does it otherwise.
intercept(#'basic.publish'{exchange = Name} = Method, Content, VHost) ->
    Decoded = rabbit_binary_parser:ensure_content_decoded(Content),
    Delay = delay(Decoded#content.properties),
    case is_integer(Delay) andalso Delay > 0 andalso rabbit_exchange:lookup(rabbit_misc:r(VHost, exchange, Name)) of
        {ok, #exchange{type = 'x-delayed-message'}} -> record(Method, Decoded, Delay);
        _ -> {Method, Decoded}
    end;
intercept(Method, Content, _VHost) -> {Method, Content}.

%% The channel puts another address in place of this one later.
delay(#'P_basic'{reply_to = To}) when To =:= ?DIRECT_REPLY_TO -> none;
delay(#'P_basic'{headers = undefined}) -> none;
delay(#'P_basic'{headers = Headers}) ->
    case lists:keyfind(<<"x-delay">>, 1, Headers) of
        {_, Type, Value} -> rabbit_millrace_record:delay({Type, Value});
        false -> none
    end.

record(#'basic.publish'{exchange = Exchange, routing_key = Key} = Method, Content, Delay) ->
    case rabbit_millrace_record:new(Exchange, Key, Content, Delay) of
        {ok, Jid, Record} ->
            put(?MODULE, Jid),
            %% A channel keeps the module of each type. It may still have the archived plugin's, which
            %% would route the record as a message without a delay.
            put({xtype_to_module, 'x-delayed-message'}, rabbit_millrace_delayed),
            {Method, Record};
        {error, Text} -> rabbit_misc:amqp_error(precondition_failed, Text, [], 'basic.publish')
    end.

%% Returns the jid of the record that intercept/3 has made for the message that this process routes
%% next, or undefined. No client can make this note.
take_record() -> erase(?MODULE).
