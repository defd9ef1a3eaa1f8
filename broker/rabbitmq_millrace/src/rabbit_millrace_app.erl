%% The application. RabbitMQ starts it when the plugin is enabled, and stops it when the plugin is
%% disabled.
%%
%% The files of this plugin are compiled with the oldest supported Erlang and must load in the
%% newest: they contain no binary patterns, because Erlang 29 does not load the code that
%% Erlang 25 generates for them.
-module(rabbit_millrace_app).
-behaviour(application).

-export([start/2, stop/1]).

start(_Type, _Args) -> rabbit_millrace_sup:start_link().

stop(_State) -> ok.
