package scheduler

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

// TestFailovers drives leaders and views through failovers of a broker that shows records before it
// has stored them, as a LavinMQ cluster does. Unconfirmed records may be gone although they were
// read, and other records get their offsets. No confirmed record is lost, nothing is done twice
// unless it was unconfirmed, and no journal is treated as one with a gap.
func TestFailovers(t *testing.T) {
	tries(t, 400, 60)
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		defer w.close()
		t.Repeat(map[string]func(*rapid.T){
			"append":      w.append,
			"append2":     w.append,
			"read":        w.read,
			"read2":       w.read,
			"elect":       w.elect,
			"lead":        w.lead,
			"run":         w.run,
			"run2":        w.run,
			"command":     w.command,
			"change":      w.change,
			"undo":        w.undo,
			"operate":     w.operate,
			"enqueue":     w.enqueue,
			"pause":       w.pause,
			"time":        w.pass,
			"disconnect":  w.disconnect,
			"killSidecar": w.killSidecar,
			"forget":      w.forget,
			"killQueue":   w.killQueue,
			"refuse":      w.refuse,
			"failover":    w.failover,
			"failover2":   w.failover,
		})
		w.quiesce()
		w.checkNothingIsTakenForLost()
		w.check()
	})
}

// failover takes what the broker has not confirmed.
func (w *world) failover(t *rapid.T) {
	w.killBroker(t)
	short := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(w.broker.streams)) {
		stream := w.broker.streams[name]
		most := stream.end() - max(stream.base, w.broker.sure[name])
		lost := rapid.IntRange(0, most).Draw(t, "lost of "+name)
		for _, r := range stream.records[len(stream.records)-lost:] {
			here := place{name, stream.generation, r.Offset}
			delete(w.broker.origin, here)
			delete(w.broker.jids, here)
		}
		stream.records = slices.Clone(stream.records[:len(stream.records)-lost])
		short[name] = stream.end()
	}
	w.broker.forgetEpochs()
	clear(w.broker.known) // the record that journaled a confirm may be gone
	for _, p := range w.broker.openDispatches(nil, false) {
		w.broker.unsafe[p] = "the journal does not have its confirm any more"
	}
	for _, s := range w.sidecars {
		w.discoverLosses(s, short)
	}
}

// checkNothingIsTakenForLost requires that no leader has ever concluded that the journal has a gap,
// or that a stream was deleted and created again.
func (w *world) checkNothingIsTakenForLost() {
	for _, r := range w.broker.streams[wire.Journal].records {
		j, err := wire.ParseJournal(r.Body)
		if err != nil {
			continue
		}
		require.NotEqual(w.t, wire.TypeRecreated, j.Type, "%s", j.Stream)
		if j.Type == wire.TypeOpened {
			require.Empty(w.t, j.Held, "epoch %d: %s", r.Offset, j.Reason)
		}
	}
}
