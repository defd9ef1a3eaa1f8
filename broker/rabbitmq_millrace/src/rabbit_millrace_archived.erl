%% The messages that the archived rabbitmq_delayed_message_exchange keeps.
-module(rabbit_millrace_archived).
-include_lib("kernel/include/logger.hrl").
-include_lib("rabbit_common/include/rabbit.hrl").

-export([name/0, vhost/1, store/1]).

%% Since RabbitMQ 3.13, delivery is a message container.
-record(delay_key, {timestamp, exchange}).
-record(delay_entry, {delay_key, delivery, ref}).

%% The name of its server. The name of a table begins with it, and ends with the name of the node.
name() -> rabbit_delayed_message.

vhost(#delay_entry{delay_key = #delay_key{exchange = #exchange{name = #resource{virtual_host = VHost}}}}) -> VHost.

%% Returns the entries that are stored as records, or were deleted with their virtual host.
store(Entries) -> lists:append([store(VHost, Es) || {VHost, Es} <- maps:to_list(by_vhost(Entries))]).

by_vhost(Entries) ->
    lists:foldr(fun(E, All) -> maps:update_with(vhost(E), fun(Es) -> [E | Es] end, [E], All) end, #{}, Entries).

store(VHost, Entries) ->
    case {rabbit_vhost:exists(VHost), rabbit_amqqueue:exists(rabbit_millrace_record:stream(VHost))} of
        {true, true} ->
            {Good, Records} = lists:unzip([{E, R} || E <- Entries, {ok, R} <- [record(E)]]),
            [E || {E, {ok, _}} <- lists:zip(Good, rabbit_millrace_handover:store_all(VHost, Records))];
        {true, false} -> [];
        {false, _} -> Entries
    end.

record(#delay_entry{delay_key = #delay_key{timestamp = Due, exchange = #exchange{name = Name}}, delivery = Message}) ->
    {Key, Content} = message(Message),
    Delay = max(1, Due - os:system_time(millisecond)),
    case rabbit_millrace_record:new(Name#resource.name, Key, Content, Delay) of
        {ok, _Jid, Record} -> {ok, Record};
        {error, Text} ->
            ?LOG_ERROR("Millrace cannot take over a delayed message of ~ts: ~ts", [rabbit_misc:rs(Name), Text]),
            error
    end.

message(#delivery{message = #basic_message{routing_keys = [Key | _], content = Content}}) ->
    {Key, rabbit_binary_parser:ensure_content_decoded(Content)};
message(Message) -> {hd(mc:routing_keys(Message)), mc:protocol_state(mc:convert(mc_amqpl, Message))}.
