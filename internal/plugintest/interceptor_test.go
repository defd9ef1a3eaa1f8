//go:build plugin

package plugintest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
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

// testInterceptor publishes a delayed message while another plugin intercepts basic.publish.
func testInterceptor(t *testing.T, n *node) {
	file := filepath.Join(n.dir, "test_interceptor.erl")
	require.NoError(t, os.WriteFile(file, []byte(interceptor), 0o600))
	_, err := n.Eval(t.Context(), fmt.Sprintf(`{ok, M, Code} = compile:file(%q, [binary]), {module, M} = code:load_binary(M, "test", Code), `+
		`ok = rabbit_registry:register(channel_interceptor, <<"test">>, M).`, file))
	require.NoError(t, err)
	a := n.application(t)
	a.declare(t, "intercepted", "direct")
	a.send(t, "intercepted", "", hour, amqp.Publishing{Body: []byte("intercepted")})
	require.Equal(t, "intercepted", n.recordOf(t, "intercepted").body())
	seen, err := n.Eval(t.Context(), "persistent_term:get(test_interceptor, false).")
	require.NoError(t, err)
	require.Equal(t, "true", seen)
	_, err = n.Eval(t.Context(), `rabbit_registry:unregister(channel_interceptor, <<"test">>).`)
	require.NoError(t, err)
}
