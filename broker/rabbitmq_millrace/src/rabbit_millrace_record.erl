%% The record of a delayed message: a scheduled job with the message as its only argument. A sidecar
%% publishes the message when the job is due.
-module(rabbit_millrace_record).
-include_lib("rabbit_common/include/rabbit.hrl").
-include_lib("rabbit_common/include/rabbit_framing.hrl").

-export([stream/1, delay/1, new/4, publish_method/0]).

-define(STREAM, <<"scheduled_jobs">>).

%% A record may have 16 MiB. The retries of a job have its error too, so a part of that stays free.
-define(MAX_BYTES, (16 * 1024 - 128) * 1024).

%% A larger number of seconds would count as milliseconds.
-define(LATEST_MS, 99999999999000).

%% A longer body is written in Base64.
-define(MAX_TEXT_BYTES, 65536).

%% The counter of a jid always has eight digits.
-define(START_OF_COUNTER, 10000000).
-define(END_OF_COUNTER, 100000000).

%% No integer of a larger number of digits makes a difference, and they take long to read.
-define(MAX_DIGITS, 20).

%% The stream of the records in a virtual host.
stream(VHost) -> rabbit_misc:r(VHost, queue, ?STREAM).

publish_method() -> #'basic.publish'{exchange = <<>>, routing_key = ?STREAM}.

%% The milliseconds that a value of the header x-delay stands for, or none.
delay({timestamp, _}) -> none;
delay({_Type, Value}) when is_integer(Value) -> Value;
delay({_Type, Value}) when is_float(Value) -> trunc(Value);
delay({_Type, Value}) when is_binary(Value), byte_size(Value) =< ?MAX_DIGITS ->
    try binary_to_integer(Value)
    catch error:badarg -> none
    end;
delay(_) -> none.

%% Returns the jid and the message to store for a decoded message that is published to an exchange.
%% It keeps what RabbitMQ checks in the properties of a message, and what it routes by. Each other
%% property would cost the channel time.
new(Exchange, Key, #content{properties = P, payload_fragments_rev = Payload} = Content, Delay) ->
    Jid = jid(),
    case {string(Exchange), string(Key)} of
        {{ok, X}, {ok, K}} ->
            Record = iolist_to_binary(json(Jid, Delay, X, K, body(Payload), properties(Content))),
            case byte_size(Record) =< ?MAX_BYTES of
                true ->
                    User = P#'P_basic'.user_id,
                    Stored = #'P_basic'{delivery_mode = 2, message_id = Jid, headers = headers(User, copies(P#'P_basic'.headers)),
                                        user_id = User, expiration = P#'P_basic'.expiration},
                    {ok, Jid, Content#content{properties = Stored, properties_bin = none,
                                              payload_fragments_rev = [Record]}};
                false ->
                    {error, "a delayed message with its properties, in Base64, must be smaller than 16 MiB"}
            end;
        _ -> {error, "the routing key of a delayed message must be UTF-8"}
    end.

copies(undefined) -> [];
copies(Headers) -> [H || {Name, _, _} = H <- Headers, Name =:= <<"CC">> orelse Name =:= <<"BCC">>].

%% The header says that the message is to be delivered with the user_id of its record.
headers(undefined, []) -> undefined;
headers(undefined, Copies) -> Copies;
headers(User, Copies) -> [{<<"millrace-user-id">>, longstr, User} | Copies].

json(Jid, Delay, Exchange, Key, Body, Properties) ->
    Now = os:system_time(millisecond),
    [<<"{\"type\":\"scheduled_job\",\"jid\":\"">>, Jid, <<"\",\"scheduled_at\":">>, seconds(min(Now + Delay, ?LATEST_MS)),
     <<",\"job\":{\"class\":\"millrace.Message\",\"queue\":\"millrace.messages\",\"jid\":\"">>, Jid,
     <<"\",\"created_at\":">>, seconds(Now), <<",\"args\":[{\"exchange\":">>, Exchange, <<",\"routing_key\":">>, Key, Body,
     <<",\"properties_base64\":\"">>, base64:encode(Properties), <<"\"}]}}">>].

seconds(Ms) -> [integer_to_binary(Ms div 1000), $. | tl(integer_to_list(1000 + Ms rem 1000))].

%% A jid has 24 hexadecimal digits: 64 random bits, which a process makes once, and a counter. Random
%% bytes for each would cost the channel more than all else here.
jid() ->
    case get(?MODULE) of
        {Prefix, Count} when Count < ?END_OF_COUNTER ->
            put(?MODULE, {Prefix, Count + 1}),
            iolist_to_binary([Prefix, integer_to_binary(Count)]);
        _ ->
            put(?MODULE, {hex(crypto:strong_rand_bytes(8)), ?START_OF_COUNTER}),
            jid()
    end.

hex(Bytes) -> list_to_binary([[digit(B bsr 4), digit(B band 15)] || B <- binary_to_list(Bytes)]).

digit(N) when N < 10 -> $0 + N;
digit(N) -> $a + N - 10.

%% The flags and values as the client sent them. There are none if it is a part of the broker.
properties(#content{properties_bin = none, properties = P}) -> iolist_to_binary(rabbit_framing_amqp_0_9_1:encode_properties(P));
properties(#content{properties_bin = Bytes}) -> Bytes.

body(Payload) ->
    Body = iolist_to_binary(lists:reverse(Payload)),
    case byte_size(Body) =< ?MAX_TEXT_BYTES andalso text(Body, binary:match(Body, special())) of
        {ok, Text} -> [<<",\"body\":">>, Text];
        _ -> [<<",\"body_base64\":\"">>, base64:encode(Body), $"]
    end.

%% Special is the place of the first byte that a string of JSON must escape. A body that has a control
%% character there is no text: Base64 is shorter than escapes.
text(Bytes, {At, 1} = Special) ->
    case binary:at(Bytes, At) of
        Control when Control < 32, Control =/= $\t, Control =/= $\n, Control =/= $\r -> error;
        _ -> string(Bytes, Special)
    end;
text(Bytes, nomatch) -> string(Bytes, nomatch).

%% A string of JSON, if the bytes are UTF-8.
string(Bytes) -> string(Bytes, binary:match(Bytes, special())).

string(Bytes, Special) ->
    case unicode:characters_to_binary(Bytes) of
        Text when is_binary(Text) -> {ok, [$", escape(Bytes, Special), $"]};
        _ -> error
    end.

escape(Bytes, nomatch) -> Bytes;
escape(Bytes, _) -> [escaped(Byte) || Byte <- binary_to_list(Bytes)].

escaped($") -> <<"\\\"">>;
escaped($\\) -> <<"\\\\">>;
escaped($\n) -> <<"\\n">>;
escaped($\r) -> <<"\\r">>;
escaped($\t) -> <<"\\t">>;
escaped(Control) when Control < 32 -> [<<"\\u00">>, digit(Control bsr 4), digit(Control band 15)];
escaped(Byte) -> Byte.

%% The bytes that a string of JSON cannot have, as a compiled pattern.
special() ->
    case persistent_term:get(?MODULE, undefined) of
        undefined ->
            Pattern = binary:compile_pattern([<<Byte>> || Byte <- [$", $\\ | lists:seq(0, 31)]]),
            persistent_term:put(?MODULE, Pattern),
            Pattern;
        Pattern -> Pattern
    end.
