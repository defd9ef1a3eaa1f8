%% Where the sidecars keep their views and sockets: in folders that only the node's user can read.
-module(rabbit_millrace_place).
-include_lib("kernel/include/file.hrl").

-export([state/1, socket/1, trusted/1, compiled/0]).

%% The longest path of a socket that every system accepts.
-define(LONGEST_SOCKET, 100).

%% The folder of a virtual host's view.
state(VHost) -> filename:join([rabbit_millrace_config:state_dir(), "vhosts", name(VHost)]).

%% The file of the certificates that a virtual host's sidecar trusts.
trusted(VHost) -> filename:join(rabbit_millrace_config:state_dir(), name(VHost) ++ ".pem").

%% The folder of what the node compiles.
compiled() -> filename:join(rabbit_millrace_config:state_dir(), "compiled").

%% Returns the path of a virtual host's socket, whose folder exists. Paths of sockets are limited,
%% so if the node's data folder has a long path, the socket is in a folder of its own in /tmp.
socket(VHost) ->
    Dir = rabbit_millrace_config:state_dir(),
    case length(Dir) + 14 > ?LONGEST_SOCKET of
        false -> in(Dir, VHost, filename:dirname(Dir));
        true -> in("/tmp/millrace-" ++ hash([atom_to_list(node()), Dir]), VHost, filename:dirname(Dir))
    end.

in(Dir, VHost, Data) ->
    case own(Dir, Data) of
        ok -> {ok, filename:join(Dir, name(VHost) ++ ".s")};
        {error, Reason} -> {error, Reason}
    end.

%% Makes sure that a folder exists and belongs to the user who owns the node's data.
own(Dir, Data) ->
    {ok, #file_info{uid = Owner}} = file:read_file_info(Data),
    _ = file:make_dir(Dir),
    case file:read_link_info(Dir) of
        {ok, #file_info{type = directory, uid = Owner}} ->
            case file:change_mode(Dir, 8#700) of
                ok -> ok;
                {error, Fault} -> fault(Dir, file:format_error(Fault))
            end;
        {ok, _} -> fault(Dir, "it is not a folder of this user's");
        {error, Fault} -> fault(Dir, file:format_error(Fault))
    end.

fault(Dir, Why) -> {error, unicode:characters_to_binary(["the folder ", Dir, " cannot be used: ", Why])}.

%% A short name for a virtual host in the file system.
name(VHost) -> hash(VHost).

hash(Data) -> string:lowercase(binary_to_list(binary:encode_hex(binary:part(crypto:hash(sha256, Data), 0, 5)))).
