%% Answers of this plugin itself, in the form of the sidecar's.
-module(rabbit_millrace_reply).

-export([problem/3, json/3]).

problem(Status, Reason, Req) ->
    json(Status, #{error => code(Status), reason => unicode:characters_to_binary(Reason)}, Req).

json(Status, Body, Req) ->
    cowboy_req:reply(Status, #{<<"content-type">> => <<"application/json">>, <<"cache-control">> => <<"no-store">>},
                     rabbit_json:encode(Body), Req).

code(400) -> <<"bad_request">>;
code(401) -> <<"not_authorised">>;
code(403) -> <<"access_refused">>;
code(404) -> <<"not_found">>;
code(405) -> <<"method_not_allowed">>;
code(413) -> <<"payload_too_large">>;
code(415) -> <<"unsupported_media_type">>;
code(502) -> <<"bad_gateway">>;
code(503) -> <<"service_unavailable">>.
