%% An HTTP/1.1 client for the sidecar's socket: one request for each connection.
-module(rabbit_millrace_http).

-export([connect/1, send_head/4, answer/2, read/2, read_all/2, get/3]).

-define(CONNECT_TIMEOUT, 2000).
-define(HEAD_TIMEOUT, 120000). % an answer may wait for something, such as a lease
-define(GET_TIMEOUT, 3000).

%% The sidecar accepts requests for this host.
-define(HOST, "localhost").

connect(Path) ->
    gen_tcp:connect({local, Path}, 0, [binary, {active, false}, {packet, raw}], ?CONNECT_TIMEOUT).

%% Sends the request line and the headers.
send_head(Socket, Method, Target, Headers) ->
    gen_tcp:send(Socket, [Method, " ", Target, " HTTP/1.1\r\nhost: " ?HOST "\r\n",
                          [[Name, ": ", Value, "\r\n"] || {Name, Value} <- Headers], "\r\n"]).

%% Reads the head of an answer. Returns {ok, Status, Headers} with names in lower case, or
%% {error, Reason}. After it, the socket is raw.
answer(Socket, Timeout0) ->
    Timeout = case Timeout0 of default -> ?HEAD_TIMEOUT; _ -> Timeout0 end,
    ok = inet:setopts(Socket, [{packet, http_bin}]),
    case gen_tcp:recv(Socket, 0, Timeout) of
        {ok, {http_response, _, Status, _}} -> headers(Socket, Status, #{}, Timeout);
        {ok, _} -> {error, no_http};
        {error, _} = Error -> Error
    end.

headers(Socket, Status, Headers, Timeout) ->
    case gen_tcp:recv(Socket, 0, Timeout) of
        {ok, {http_header, _, Name, _, Value}} ->
            headers(Socket, Status, add(lower(Name), Value, Headers), Timeout);
        {ok, http_eoh} ->
            _ = inet:setopts(Socket, [{packet, raw}]),
            {ok, Status, Headers};
        {ok, _} -> {error, no_http};
        {error, _} = Error -> Error
    end.

add(Name, Value, Headers) ->
    maps:update_with(Name, fun(Before) -> iolist_to_binary([Before, ", ", Value]) end, Value, Headers).

lower(Name) when is_atom(Name) -> string:lowercase(atom_to_binary(Name, latin1));
lower(Name) -> string:lowercase(Name).

%% Reads the next part of a body. State begins with the headers of the answer. Returns
%% {ok, Data, State}, done, or {error, Reason} if the body ends before its end.
read(Socket, Headers) when is_map(Headers) ->
    case Headers of
        #{<<"transfer-encoding">> := _} -> read(Socket, chunked);
        #{<<"content-length">> := Length} -> read(Socket, binary_to_integer(Length));
        _ -> read(Socket, until_closed)
    end;
read(_Socket, 0) -> done;
read(Socket, Left) when is_integer(Left) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Data} -> {ok, Data, Left - byte_size(Data)};
        {error, _} = Error -> Error
    end;
read(Socket, until_closed) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Data} -> {ok, Data, until_closed};
        {error, closed} -> done;
        {error, _} = Error -> Error
    end;
read(Socket, chunked) ->
    case line(Socket) of
        {ok, Line} ->
            try list_to_integer(string:trim(binary_to_list(Line)), 16) of
                0 -> done;
                Size -> chunk(Socket, Size)
            catch error:badarg -> {error, no_chunk}
            end;
        {error, _} = Error -> Error
    end.

%% A chunk, and the end of its line.
chunk(Socket, Size) ->
    _ = inet:setopts(Socket, [{packet, raw}]),
    case gen_tcp:recv(Socket, Size + 2) of
        {ok, Data} -> {ok, binary:part(Data, 0, Size), chunked};
        {error, _} = Error -> Error
    end.

line(Socket) ->
    _ = inet:setopts(Socket, [{packet, line}]),
    gen_tcp:recv(Socket, 0).

%% Reads a JSON document. Returns {Status, Document}, or {0, null} if there is no answer.
get(Path, Target, Headers) ->
    case connect(Path) of
        {ok, Socket} ->
            try get_from(Socket, Target, Headers)
            catch _:_ -> {0, null}
            after gen_tcp:close(Socket)
            end;
        {error, _} -> {0, null}
    end.

get_from(Socket, Target, Headers) ->
    ok = send_head(Socket, "GET", Target, [{"connection", "close"} | Headers]),
    {ok, Status, Found} = answer(Socket, ?GET_TIMEOUT),
    Body = read_all(Socket, Found),
    {Status, try rabbit_json:decode(Body) catch _:_ -> null end}.

%% Reads all of a short body, or as much as comes.
read_all(Socket, Headers) -> all(Socket, Headers, []).

all(Socket, State, Read) ->
    case read(Socket, State) of
        {ok, Data, Next} -> all(Socket, Next, [Read, Data]);
        _ -> iolist_to_binary(Read)
    end.
