%% Matches routing keys with the bindings of delayed exchanges where RabbitMQ keeps its metadata in
%% Khepri. Its index of topic bindings has those of the type topic only.
-module(rabbit_millrace_topic).
-include_lib("rabbit_common/include/rabbit.hrl").

-export([needed/0, match/3]).

%% The table of the bindings of each exchange, since RabbitMQ 4.2.
-define(TABLE, rabbit_khepri_route_by_source).

%% Splitting the keys of the bindings takes most of the time, so each process keeps some.
-define(MAX_CACHED, 1000).

needed() -> erlang:function_exported(rabbit_khepri, is_enabled, 0) andalso rabbit_khepri:is_enabled().

%% Returns the destinations whose bindings match one of the routing keys.
match(Exchange, Keys, Options) ->
    All = [words(Key) || Key <- Keys],
    Matches = fun(Key) ->
        Pattern = cached_words(Key),
        lists:any(fun(Words) -> matches(Pattern, Words) end, All)
    end,
    try ets:lookup(?TABLE, Exchange) of
        Bindings ->
            WithKeys = maps:get(return_binding_keys, Options, false),
            [destination(WithKeys, Destination, Key)
             || {_, _, Key, Destination, _} <- Bindings, Matches(Key)]
    catch
        error:badarg -> rabbit_router:match_bindings(Exchange, fun(#binding{key = Key}) -> Matches(Key) end)
    end.

destination(true, #resource{kind = queue} = Queue, Key) -> {Queue, Key};
destination(_WithKeys, Destination, _Key) -> Destination.

cached_words(Key) ->
    case get(?MODULE) of
        #{Key := Words} -> Words;
        Cache ->
            Words = words(Key),
            put(?MODULE, case is_map(Cache) andalso map_size(Cache) < ?MAX_CACHED of
                             true -> Cache#{Key => Words};
                             false -> #{Key => Words}
                         end),
            Words
    end.

%% The empty key has no words. Literal binaries are compared here, because they are no patterns.
words(Key) when byte_size(Key) =:= 0 -> [];
words(Key) -> [word(Word) || Word <- binary:split(Key, <<".">>, [global])].

word(Word) when Word =:= <<"#">> -> any_words;
word(Word) when Word =:= <<"*">> -> any_word;
word(Word) -> Word.

matches([], Words) -> Words =:= [];
matches([any_words | Pattern], []) -> matches(Pattern, []);
matches([any_words | Pattern] = All, [_ | Words] = Rest) -> matches(Pattern, Rest) orelse matches(All, Words);
matches([any_word | Pattern], [_ | Words]) -> matches(Pattern, Words);
matches([Word | Pattern], [Word | Words]) -> matches(Pattern, Words);
matches(_, _) -> false.
