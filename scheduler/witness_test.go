package scheduler

import (
	"log/slog"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// twoNodes is what the management API reports about two nodes that are connected.
func twoNodes() []broker.Node {
	return []broker.Node{
		{Name: "rabbit@a", Running: true, Uptime: 9 * time.Second, Links: []broker.Link{{Peer: "rabbit@b", Port: 1, PeerPort: 2}}},
		{Name: "rabbit@b", Running: true, Uptime: 7 * time.Second, Links: []broker.Link{{Peer: "rabbit@a", Port: 2, PeerPort: 1}}},
		{Name: "rabbit@c", Uptime: time.Hour},
	}
}

func TestLinksIdentifyBrokerRun(t *testing.T) {
	f := broker.FingerprintOf(twoNodes())
	f.Nodes["rabbit@a"], f.Nodes["rabbit@b"] = "x", "y"
	known := f.String()
	require.Equal(t, "rabbit@a=x rabbit@b=y rabbit@a>rabbit@b=1-2", known)
	require.True(t, sameLinks(broker.FingerprintOf(twoNodes()), known))
	require.Empty(t, broker.Fingerprint{}.String())
	for end := range 2 { // a node that has just started does not report its links yet
		oneEnd := twoNodes()
		oneEnd[end].Links = nil
		require.True(t, sameLinks(broker.FingerprintOf(oneEnd), known))
	}
	other := twoNodes()
	other[1].Links = append(other[1].Links, broker.Link{Peer: "rabbit@c", Port: 6, PeerPort: 5})
	other[2].Running, other[2].Links = true, []broker.Link{{Peer: "rabbit@a", Port: 3, PeerPort: 4}, {Peer: "rabbit@b", Port: 5, PeerPort: 6}}
	require.Equal(t, map[string]string{"rabbit@a>rabbit@b": "1-2", "rabbit@a>rabbit@c": ",4-3", "rabbit@b>rabbit@c": "6-5"},
		broker.FingerprintOf(other).Links, "a reports links, and none to c")

	for name, change := range map[string]func(all []broker.Node){
		"a link has another port":   func(all []broker.Node) { all[0].Links[0].Port = 3 },
		"a link is gone":            func(all []broker.Node) { all[0].Links, all[1].Links = nil, nil },
		"a node is away":            func(all []broker.Node) { all[1].Running = false },
		"another node runs":         func(all []broker.Node) { all[2].Running = true },
		"a node has another name":   func(all []broker.Node) { all[0].Name = "rabbit@d" },
		"a link leads to a third":   func(all []broker.Node) { all[2].Running, all[0].Links[0].Peer = true, "rabbit@c" },
		"none of the nodes is left": func(all []broker.Node) { all[0].Running, all[1].Running = false, false },
	} {
		t.Run(name, func(t *testing.T) {
			nodes := twoNodes()
			change(nodes)
			require.False(t, sameLinks(broker.FingerprintOf(nodes), known))
			now := broker.FingerprintOf(nodes)
			for node := range now.Nodes {
				now.Nodes[node] = f.Nodes[node]
			}
			require.NotEqual(t, known, now.String())
		})
	}
}

// Without a link between each two running nodes, a broken link cannot be detected.
func TestUnknownLinks(t *testing.T) {
	linked := func(nodes []broker.Node) bool { return broker.FingerprintOf(nodes).Linked() }
	require.True(t, linked(twoNodes()), "the third one does not run")
	require.True(t, linked(twoNodes()[:1]))
	for name, change := range map[string]func(all []broker.Node){
		"no node reports links": func(all []broker.Node) { all[0].Links, all[1].Links = nil, nil },
		"links have no ports":   func(all []broker.Node) { all[0].Links[0].Port, all[1].Links[0].PeerPort = 0, 0 },
		"a third node runs":     func(all []broker.Node) { all[2].Running = true },
	} {
		nodes := twoNodes()
		change(nodes)
		require.False(t, linked(nodes), name)
	}
	oneSide := twoNodes()
	oneSide[0].Links = nil
	require.True(t, linked(oneSide), "the other end reports it")
}

// Links are known once every running node has reported them since it was first asked.
func TestFreshLinks(t *testing.T) {
	first := uptimes(twoNodes())
	nodes := twoNodes()
	require.False(t, freshSince(nodes, first))
	nodes[0].Uptime += 5 * time.Second
	require.False(t, freshSince(nodes, first), "one node has not reported yet")
	nodes[1].Uptime += 5 * time.Second
	require.True(t, freshSince(nodes, first), "the third one does not run")
}

// An overloaded node that does not answer now and then delays no verdict. The verdict needs a look
// that sees all witnesses, and links that were reported since another that did, not long before.
func TestLooksAtOverloadedBroker(t *testing.T) {
	now, after := time.Now(), func(s time.Duration) []broker.Node {
		nodes := twoNodes()
		nodes[0].Uptime += s * time.Second
		nodes[1].Uptime += s * time.Second
		return nodes
	}
	var l looks
	require.False(t, l.fresh(now, after(0)), "no witness was seen")
	require.Equal(t, undecided, l.take(now, noAnswer, false))
	require.False(t, l.fresh(now, after(5)), "no witness was seen")
	require.Equal(t, undecided, l.take(now, allSeen, false))
	require.False(t, l.fresh(now, after(5)), "this may be as old as the witnesses")
	require.Equal(t, undecided, l.take(now, noAnswer, false))
	require.False(t, l.fresh(now, after(5)))
	require.Equal(t, undecided, l.take(now, allSeen, false))
	require.True(t, l.fresh(now, after(10)))
	require.Equal(t, undecided, l.take(now, noAnswer, true), "a node may have restarted")
	require.True(t, l.fresh(now, after(10)))
	require.Equal(t, stands, l.take(now, allSeen, true))

	now = now.Add(linksAge + time.Second)
	require.Equal(t, undecided, l.take(now, allSeen, true), "the report came too late")
	require.False(t, l.fresh(now, after(30)), "it is the first again")
	require.True(t, l.fresh(now, after(35)))

	require.Equal(t, undecided, l.take(now, oneGone, true))
	require.Equal(t, undecided, l.take(now.Add(absentWithin-1), oneGone, true))
	require.Equal(t, gone, l.take(now.Add(absentWithin), oneGone, true))
	require.Equal(t, stands, l.take(now.Add(absentWithin), allSeen, true), "another sidecar held it")
	require.Equal(t, undecided, l.take(now.Add(absentWithin), oneGone, true))
}

// A witness stands until the broker restarts. A leader recognizes the witness of its predecessor.
func TestWitnessOfOneNode(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	mgmt := management(t, s, v)
	w := func() *witness { return &witness{conn: conn, mgmt: mgmt, log: slog.New(slog.DiscardHandler)} }

	for _, unknown := range []string{"", "rabbit@elsewhere=1234", wire.WitnessPrefix + "none"} {
		found, err := w().check(t.Context(), unknown)
		require.NoError(t, err)
		require.Equal(t, gone, found, unknown)
	}
	first := w()
	require.Equal(t, !conn.Features().OneNodeServes, first.changed(t.Context()), "there is none: the API had not answered")
	id, err := first.renew(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, id)
	for range 5 {
		next := w()
		found, err := next.check(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, stands, found)
		found, err = next.wait(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, stands, found)
		again, err := next.renew(t.Context())
		require.NoError(t, err)
		require.Equal(t, id, again)
		require.False(t, next.changed(t.Context()))
	}
	require.True(t, w().alone(t.Context()))
}

// A witness that is not seen for a moment decides nothing: its node may be overloaded, or another
// sidecar, which may have been killed, holds it. One that stays away is lost.
func TestWitnessThatIsNotSeen(t *testing.T) {
	t.Parallel()
	v := brokertest.Erlang(t)
	s, conn := runner(t, v)
	mgmt := management(t, s, v)
	w := func() *witness { return &witness{conn: conn, mgmt: mgmt, log: slog.New(slog.DiscardHandler)} }
	known, err := w().renew(t.Context())
	require.NoError(t, err)
	nodes, err := mgmt.Nodes(t.Context())
	require.NoError(t, err)
	queue := broker.WitnessQueue(nodes[0].Name)
	holds := v.Channel(t)
	take := func() amqp.Delivery {
		d, found, err := holds.Get(queue, false)
		require.NoError(t, err)
		require.True(t, found)
		return d
	}

	next, held := w(), take()
	found, err := next.check(t.Context(), known)
	require.NoError(t, err)
	require.Equal(t, undecided, found)
	time.AfterFunc(500*time.Millisecond, func() { _ = held.Reject(true) })
	again, err := next.renew(t.Context())
	require.NoError(t, err)
	require.Equal(t, known, again, "it is not replaced")
	found, err = next.wait(t.Context(), known)
	require.NoError(t, err)
	require.Equal(t, stands, found)

	const silence = 18 * time.Second
	began := v.SuspendQueue(t, queue, silence)
	next = w()
	found, err = next.check(t.Context(), known)
	require.NoError(t, err)
	require.Equal(t, undecided, found)
	again, err = next.renew(t.Context())
	require.NoError(t, err)
	require.Equal(t, known, again)
	found, err = next.wait(t.Context(), known)
	require.NoError(t, err)
	require.Equal(t, stands, found)
	require.Greater(t, time.Since(began), silence, "it was seen")

	take()
	next = w()
	found, err = next.wait(t.Context(), known)
	require.NoError(t, err)
	require.Equal(t, gone, found)
	again, err = next.renew(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, known, again)
}

// Without a management API, only a setting says that the broker is a single node.
func TestWitnessWithoutManagementAPI(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	_, conn := runner(t, v)
	if conn.Features().OneNodeServes {
		t.Skip("this broker works as one node")
	}
	w := &witness{conn: conn, log: slog.New(slog.DiscardHandler)}
	require.False(t, w.alone(t.Context()))
	id, err := w.renew(t.Context())
	require.NoError(t, err)
	require.Empty(t, id)

	w.singleNode = true
	require.True(t, w.alone(t.Context()))
	id, err = w.renew(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, id)
	found, err := w.check(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, stands, found)
}

// The first leader of this version deletes the witness of an older one. What the older leader had
// fired is not fired again.
func TestWitnessOfOlderVersion(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s, conn := runner(t, v)
	if conn.Features().OneNodeServes {
		t.Skip("this broker's witness is such a queue")
	}
	mgmt := management(t, s, v)
	old := wire.WitnessPrefix + "0123456789abcdef"
	require.NoError(t, conn.Witnesses().DeclareTransient(t.Context(), old))
	w := &witness{conn: conn, mgmt: mgmt, log: slog.New(slog.DiscardHandler)}
	found, err := w.check(t.Context(), old)
	require.NoError(t, err)
	require.Equal(t, stands, found)
	id, err := w.renew(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, old, id)

	l := &leadership{s: s, conn: conn, evidence: evidence{oldWitness: old}}
	l.dropOldWitness(t.Context())
	exists, err := conn.Queues().Exists(t.Context(), old)
	require.NoError(t, err)
	require.False(t, exists)
}
