package main

import (
	"errors"
	"log/slog"
	"time"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/tracker/feed"
	"github.com/millrace-jobs/millrace/tracker/metrics"
	"github.com/millrace-jobs/millrace/tracker/processes"
	"github.com/millrace-jobs/millrace/view"
	"github.com/millrace-jobs/millrace/wire"
)

// viewed are the streams from which the view is made, beside the journal.
var viewed = []string{wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated, wire.Heartbeats, wire.JobMetrics, wire.Rollups, wire.JobEnds}

// state is what the sidecar knows from the streams.
type state struct {
	store   *view.Store
	entries *tracker.Entries
	workers *processes.Processes
	metrics *metrics.Reader
	feed    *feed.Feed
	source  *source
	view    *view.View
}

// openState opens the store and what is folded into it. lost says which end of the journal the
// previous view has lost, if it has.
func openState(cfg *sidecarSettings, log *slog.Logger, lost *view.LostEndError) (st *state, err error) {
	st = &state{feed: feed.New(log), source: &source{}}
	if st.store, err = cfg.openView(log); err != nil {
		return nil, err
	}
	if err := st.openParts(cfg, lost); err != nil {
		return nil, errors.Join(err, st.store.Close())
	}
	st.view = view.New(st.store, st.source, st.entries, log, wire.Journal, viewed...)
	st.view.After(wire.JobMetrics, wire.Rollups)
	for _, stream := range wire.EntryStreams { // an entry that was fired, as the journal says, need not be stored first
		st.view.After(stream, wire.Journal)
	}
	return st, nil
}

func (st *state) openParts(cfg *sidecarSettings, lost *view.LostEndError) (err error) {
	trusted := append([]string{cfg.user()}, cfg.TrustedUsers...)
	if st.entries, err = tracker.NewEntries(st.store, trusted...); err != nil {
		return err
	}
	if st.workers, err = processes.Open(st.store, time.Now); err != nil {
		return err
	}
	sums, err := metrics.New(st.store, time.Now, trusted...)
	if err != nil {
		return err
	}
	kept, err := cfg.timelines()
	if err != nil {
		return err
	}
	sums.Keep(kept)
	st.metrics = sums.Reader()
	st.entries.Add(st.workers)
	st.entries.Add(sums)
	if lost != nil {
		if err := st.entries.LostEnd(lost.End); err != nil {
			return err
		}
	}
	st.entries.SetObserver(st.feed)
	return nil
}

// close closes the source before the store that it fills.
func (st *state) close() error {
	st.source.Close()
	return st.store.Close()
}
