%% What this plugin adds to the management plugin: routes below /api, and the tab.
-module(rabbit_millrace_mgmt).
-behaviour(rabbit_mgmt_extension).

-export([dispatcher/0, web_ui/0]).

dispatcher() ->
    [{"/millrace-status", rabbit_millrace_wm_status, []}
     | case rabbit_millrace_config:mode() of
           link -> [];
           supervise -> [{"/millrace-session", rabbit_millrace_wm_session, []},
                         {"/millrace/[...]", rabbit_millrace_proxy, []}]
       end].

%% One file name, not a list: versions before 4.2 load one file only.
web_ui() -> [{javascript, <<"millrace.js">>}].
