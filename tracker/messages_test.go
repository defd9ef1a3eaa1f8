package tracker

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// Delayed messages are counted by exchange as long as they wait. Those whose exchange is not known
// are counted by class only.
func TestMessagesAreCountedByExchange(t *testing.T) {
	h := newHistory()
	message := func(args string) int64 {
		return h.append(sched, client, nil, fmt.Sprintf(`{"jid":"m","scheduled_at":1,"job":{"class":%q,"args":%s}}`, wire.MessageClass, args))
	}
	orders := message(`[{"exchange":"orders"}]`)
	message(`[{"exchange":"\u006frders","body":"b"}]`)
	message(`[{"exchange":"","routing_key":"q"}]`)
	for _, args := range []string{`[]`, `[{}]`, `[{"exchange":5}]`, `["orders"]`, `[{"exchange":"` + strings.Repeat("x", 256) + `"}]`,
		`[{"exchange":"orders","body":"` + strings.Repeat("x", maxInline) + `"}]`} {
		message(args)
	}
	h.append(sched, client, nil, `{"jid":"other","scheduled_at":1,"job":{"class":"C","args":[{"exchange":"orders"}]}}`)
	h.entry(dead, "d1", 1)
	h.open()
	o := newOne(t).inOrder(h)
	require.Equal(t, map[string]int64{"orders": 2, "": 1}, o.ByExchange(sched))
	require.Equal(t, map[string]int64{"d1": 1}, o.ByExchange(dead))
	require.EqualValues(t, 9, o.OfClass(sched, wire.MessageClass))
	h.confirmed(h.fire(sched, orders, "m"))
	o = newOne(t).inOrder(h)
	require.Equal(t, map[string]int64{"orders": 1, "": 1}, o.ByExchange(sched))
	o.restart()
	require.Equal(t, map[string]int64{"orders": 1, "": 1}, o.ByExchange(sched))
	requireSound(t, o)
}
