%% Certificates of RabbitMQ's listeners with TLS: under which name the sidecars of this machine reach
%% a listener, and which certificates they trust.
%%
%% The records of public_key differ between Erlang 25 and 29, so this module names none.
-module(rabbit_millrace_certificate).

-export([host/2, bundle/1]).

-define(ALTERNATIVE_NAMES, {2, 5, 29, 17}).

%% Returns a host that is in the certificate and leads to the listener, as {ok, Host}; or
%% {error, Reason}. Bound is what the listener is bound to.
host(Bound, Options) ->
    File = proplists:get_value(certfile, Options),
    case proplists:get_value(fail_if_no_peer_cert, Options, false) of
        true -> {error, "they require a certificate of each client, which the sidecars do not have"};
        false when File =:= undefined -> {error, "their settings name no certfile"};
        false ->
            case certificates(File) of
                {ok, [Own | _]} -> host(Bound, File, Own, names(Own));
                {ok, []} -> {error, [File, " has no certificate"]};
                {error, Fault} -> {error, ["their certificate ", File, " cannot be read: ", Fault]}
            end
    end.

host(_Bound, File, _Own, []) ->
    {error, ["their certificate ", File, " has no names that clients can check (subjectAltName): use one that has"]};
host(Bound, File, Own, Names) ->
    Listed = lists:join(", ", Names),
    Set = rabbit_millrace_config:tls_host(),
    Usable = fun(Host) -> matches(Own, Host) andalso (Set =/= undefined orelse leads(Host, Bound)) end,
    case lists:search(Usable, candidates(Set, Names)) of
        {value, Host} -> {ok, Host};
        false when Set =/= undefined ->
            {error, ["their certificate ", File, " is for ", Listed, ": set millrace.tls_host to one of its names, not to ", Set]};
        false ->
            {error, ["no name in their certificate ", File, " (", Listed, ") leads to this listener: make one do so, for example in "
                     "/etc/hosts. For a name with *, set millrace.tls_host"]}
    end.

candidates(undefined, Names) ->
    [_, Node] = string:split(atom_to_list(node()), "@"),
    ["127.0.0.1", "localhost", Node, net_adm:localhost() | Names];
candidates(Set, _Names) -> [Set].

matches(Own, Host) ->
    Reference = case inet:parse_strict_address(Host) of
        {ok, Address} -> {ip, Address};
        _ -> {dns_id, Host}
    end,
    Https = public_key:pkix_verify_hostname_match_fun(https),
    public_key:pkix_verify_hostname(Own, [Reference], [{match_fun, Https}]).

%% A host leads to a listener if it has an address to which the listener is bound.
leads(Host, Bound) ->
    Addresses = addresses(Host),
    case lists:member(Bound, ["auto", "0.0.0.0", "::", {0, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0}]) of
        true -> lists:any(fun is_local/1, Addresses);
        false -> lists:any(fun(A) -> lists:member(A, addresses(Bound)) end, Addresses)
    end.

addresses(Address) when is_tuple(Address) -> [Address];
addresses(Host) ->
    case inet:parse_strict_address(Host) of
        {ok, Address} -> [Address];
        _ -> lists:append([Found || Family <- [inet, inet6], {ok, Found} <- [inet:getaddrs(Host, Family)]])
    end.

is_local({127, _, _, _}) -> true;
is_local(Address) ->
    {ok, Interfaces} = inet:getifaddrs(),
    lists:member(Address, [A || {_, Properties} <- Interfaces, {addr, A} <- Properties]).

%% The names and addresses of a certificate, as strings.
names(Certificate) ->
    [Name || Found <- alternatives(public_key:pkix_decode_cert(Certificate, otp)), Name <- name(Found)].

name({dNSName, Name}) -> [Name];
name({iPAddress, Bytes}) ->
    case binary_to_list(Bytes) of
        [_, _, _, _] = Four -> [inet:ntoa(list_to_tuple(Four))];
        Sixteen when length(Sixteen) =:= 16 -> [inet:ntoa(list_to_tuple(words(Sixteen)))];
        _ -> []
    end;
name(_) -> [].

words([High, Low | Rest]) -> [High * 256 + Low | words(Rest)];
words([]) -> [].

%% The value of the extension, wherever it is.
alternatives({'Extension', ?ALTERNATIVE_NAMES, _, Names}) when is_list(Names) -> Names;
alternatives(Tuple) when is_tuple(Tuple) -> alternatives(tuple_to_list(Tuple));
alternatives([First | Rest]) -> alternatives(First) ++ alternatives(Rest);
alternatives(_) -> [].

%% The certificates of files as PEM, without the keys that the files may have too. Files that cannot
%% be read are left out.
bundle(Files) ->
    public_key:pem_encode([{'Certificate', C, not_encrypted} || File <- Files, {ok, Found} <- [certificates(File)], C <- Found]).

certificates(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            try {ok, [C || {'Certificate', C, not_encrypted} <- public_key:pem_decode(Text)]}
            catch _:_ -> {error, "it is no PEM file"}
            end;
        {error, Fault} -> {error, file:format_error(Fault)}
    end.
