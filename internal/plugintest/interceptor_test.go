//go:build plugin

package plugintest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// interceptor is a plugin's module that sees each basic.publish. Up to RabbitMQ 4.3.5, a second one
// for the same method breaks every new channel.
const interceptor = `-module(test_interceptor).
-behaviour(rabbit_channel_interceptor).
-export([description/0, init/1, intercept/3, applies_to/0]).
description() -> [{description, <<"counts">>}].
init(_Channel) -> none.
intercept(Method, Content, _State) ->
    persistent_term:put(test_interceptor, true),
    {Method, Content}.
applies_to() -> ['basic.publish'].
`

// testInterceptor enables the plugin where another one intercepts basic.publish. It may, because it
// intercepts nothing.
func testInterceptor(t *testing.T, n *node) {
	require.NoError(t, n.SetPlugins(t.Context()))
	file := filepath.Join(n.dir, "test_interceptor.erl")
	require.NoError(t, os.WriteFile(file, []byte(interceptor), 0o600))
	registered, err := n.Eval(t.Context(), fmt.Sprintf(`{ok, M, Code} = compile:file(%q, [binary]), {module, M} = code:load_binary(M, "test", Code), `+
		`ok = rabbit_registry:register(channel_interceptor, <<"test">>, M), length(rabbit_registry:lookup_all(channel_interceptor)).`, file))
	require.NoError(t, err)
	require.NoError(t, n.SetPlugins(t.Context(), plugin))
	n.await(t, "/")
	after, err := n.Eval(t.Context(), "length(rabbit_registry:lookup_all(channel_interceptor)).")
	require.NoError(t, err)
	require.Equal(t, registered, after, "the plugin adds no interceptor")
	a := send(t, n.request(t, http.MethodPost, root+"/api/jobs", guest, strings.NewReader(`{"class":"Intercepted","at":4102444800}`)))
	require.Equal(t, http.StatusCreated, a.status, a.body)
	seen, err := n.Eval(t.Context(), "persistent_term:get(test_interceptor, false).")
	require.NoError(t, err)
	require.Equal(t, "true", seen)
	_, err = n.Eval(t.Context(), `rabbit_registry:unregister(channel_interceptor, <<"test">>).`)
	require.NoError(t, err)
}
