package scheduler

import (
	"encoding/json"
	"fmt"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/scheduler/periodic"
	"github.com/millrace-jobs/millrace/wire"
)

// definePeriodic has a client or an operator do something to a periodic job.
func (w *world) definePeriodic(t *rapid.T) {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return
	}
	name := rapid.SampledFrom([]string{"p", "q"}).Draw(t, "periodic")
	w.commands++
	cmd := wire.Command{ID: fmt.Sprintf("c%d", w.commands), Periodic: name}
	cmd.Command = rapid.SampledFrom([]string{wire.CommandDefine, wire.CommandDefine, wire.CommandDefine, wire.CommandPause, wire.CommandResume,
		wire.CommandRun, wire.CommandSkip, wire.CommandForget}).Draw(t, "what")
	if cmd.Command == wire.CommandDefine {
		value := fmt.Sprintf(`{"name":%q,"every":%d,"grace":%d,"catch_up":%q,"catch_up_max":3,"overlap":%q,"jitter":%d,"job":{"class":"P","queue":%q}}`, name,
			rapid.IntRange(1, 4).Draw(t, "every"), rapid.IntRange(0, 5).Draw(t, "grace"), rapid.SampledFrom([]string{"skip", "last", "all"}).Draw(t, "catch up"),
			rapid.SampledFrom([]string{"allow", "skip"}).Draw(t, "overlap"), rapid.IntRange(0, 1).Draw(t, "jitter"), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue"))
		cmd.Definitions = &wire.Definitions{Source: "of " + name, PeriodicJobs: []json.RawMessage{json.RawMessage(value)}}
	}
	require.NoError(t, s.core.command(w.now, cmd, func(wire.Reply) {}))
}

// calmPeriodic ends that ticks come often. It reports whether that is so.
func (w *world) calmPeriodic() bool {
	s := w.leader()
	if s == nil || s.core.phase != phaseLeading {
		return false
	}
	d := &wire.Definitions{Layer: wire.LayerOperator}
	for _, j := range s.entries.Periodics.PeriodicJobs() {
		var l map[string]any
		if raw := j.Layers[wire.LayerOperator].Value; raw != nil {
			require.NoError(w.t, json.Unmarshal(raw, &l))
		}
		if def, err := j.Definition(); err != nil || def.Every > 4 {
			continue // an operator's layer may be all that is left
		}
		d.PeriodicJobs = append(d.PeriodicJobs, json.RawMessage(fmt.Sprintf(`{"name":%q,"every":1000000,"paused":%v}`, j.Name, l["paused"] == true)))
	}
	if len(d.PeriodicJobs) == 0 {
		return len(s.core.periodics.waiting) == 0 && !s.core.periodics.busy()
	}
	require.NoError(w.t, s.core.command(w.now, wire.Command{Command: wire.CommandDefine, Definitions: d}, func(wire.Reply) {}))
	return false
}

// tickEntries calls each for the entries that leaders made for ticks, except those of leaders that
// had been followed.
func (w *world) tickEntries(each func(a wire.Announcement, e wire.Entry)) {
	newest := int64(0)
	for _, r := range w.broker.streams[wire.ScheduledJobs].records {
		if r.UserID != millrace {
			continue
		}
		if j, err := wire.ParseJournal(r.Body); err == nil && j.Type == wire.TypeBarrier {
			newest = max(newest, j.Epoch)
			continue
		}
		a, announces := wire.AnnouncementOf(&r)
		late := wire.HeaderInt(r.Headers, wire.HeaderEpoch) < newest
		if !announces || a.What != wire.TypeTicked || late {
			continue
		}
		e, err := wire.EntryOf(&r)
		require.NoError(w.t, err)
		each(a, e)
	}
}

// checkPeriodic requires that each tick has one outcome, none was passed over, and no tick has two
// jobs. It reads the journal by itself.
func (w *world) checkPeriodic(s *modelSidecar) {
	for _, other := range w.sidecars {
		if !w.journalLost {
			require.Equal(w.t, s.entries.Periodics.PeriodicJobs(), other.entries.Periodics.PeriodicJobs(), "%s and %s know different periodic jobs", s.name, other.name)
		}
	}
	if w.forgets() || w.truncated {
		return
	}
	made := map[string]int64{}
	w.tickEntries(func(a wire.Announcement, e wire.Entry) {
		one, twice := made[a.Key]
		require.False(w.t, twice, "tick %s has two jobs, at %d and %d", a.Key, one, a.Offset)
		made[a.Key] = a.Offset
		w.appended[w.broker.place(a.Stream, a.Offset)] = &appendedEntry{jid: e.JID, raw: string(e.Raw)}
	})
	for key, offset := range w.journaledTicks() {
		at, is := made[key]
		require.True(w.t, is, "tick %s was made, says the journal, and has no job", key)
		require.Equal(w.t, at, offset, "tick %s", key)
		delete(made, key)
	}
	require.Empty(w.t, made, "jobs of ticks that the journal does not have; now it is %d: %+v", w.now.Unix(), s.entries.Periodics.PeriodicJobs())
	for _, j := range s.entries.Periodics.PeriodicJobs() {
		def, err := j.Definition()
		if err != nil {
			continue
		}
		schedule, err := periodic.New(&def)
		require.NoError(w.t, err)
		if next := schedule.NextOf(j, 0, 1); next[0] < w.now.Unix()-30 {
			require.Failf(w.t, "a tick has no outcome", "%s at %d, now it is %d", j.Name, next[0], w.now.Unix())
		}
	}
}

// journaledTicks reads the journal's outcomes, and checks them one after the other. It returns
// which made a job.
func (w *world) journaledTicks() map[string]int64 {
	made, jobs, epoch := map[string]int64{}, map[string]*wire.PeriodicJob{}, int64(-1)
	for _, r := range w.broker.streams[wire.Journal].records {
		j, err := wire.ParseJournal(r.Body)
		if _, dispatch := wire.DispatchOf(r.Headers); err != nil || dispatch || r.UserID != millrace {
			continue
		}
		if j.Type == wire.TypeOpened {
			epoch = r.Offset
			continue
		}
		if j.Epoch < epoch {
			continue
		}
		for _, d := range j.Defined {
			noteDefined(jobs, d)
		}
		for _, t := range j.Ticks {
			if job := jobs[t.Periodic]; job != nil {
				w.checkTick(job, t)
			}
			if t.By != nil {
				key := wire.TickKey(t.Periodic, t.Tick, "")
				if t.Outcome == wire.TickRun { // its key has an id that the journal has not
					key = ""
					w.tickEntries(func(a wire.Announcement, _ wire.Entry) {
						if a.Offset == *t.By {
							key = a.Key
						}
					})
				}
				_, twice := made[key]
				require.False(w.t, twice, "tick %s was made twice, says the journal", key)
				made[key] = *t.By
			}
		}
	}
	return made
}

func noteDefined(jobs map[string]*wire.PeriodicJob, d wire.Defined) {
	job := jobs[d.Name]
	if job == nil {
		job = &wire.PeriodicJob{Name: d.Name, Layers: map[string]wire.DefinedLayer{}, Through: d.Since}
		jobs[d.Name] = job
	}
	if delete(job.Layers, d.Layer); len(d.Value) > 0 {
		job.Layers[d.Layer] = wire.DefinedLayer{Value: d.Value}
	}
	job.Through = max(job.Through, d.Since)
	if len(job.Layers) == 0 {
		delete(jobs, d.Name)
	}
}

// checkTick requires that an outcome is that of the first tick without one, or of a run that begins
// there, and takes it in.
func (w *world) checkTick(job *wire.PeriodicJob, t wire.Tick) {
	def, err := job.Definition()
	if err != nil || t.Outcome == wire.TickRun {
		return
	}
	if t.Outcome == wire.TickVoid {
		job.Through = min(job.Through, t.Tick)
		kept := job.Recent[:0]
		for _, r := range job.Recent {
			if r.Tick <= t.Tick || r.Outcome == wire.TickMade || r.Why == wire.WhyAsked {
				kept = append(kept, r)
			}
		}
		job.Recent = kept
		return
	}
	schedule, err := periodic.New(&def)
	require.NoError(w.t, err)
	require.False(w.t, job.Decided(t.Tick), "tick %d of %s has two outcomes: %+v", t.Tick, job.Name, t)
	if t.Why != wire.WhyAsked {
		first, n := t.Tick, int64(1)
		if t.Count > 0 {
			first, n = t.From, t.Count
		}
		open := schedule.NextOf(job, 0, int(n)+1)
		require.Equal(w.t, first, open[0], "an outcome of %s passes over tick %d: %+v", job.Name, open[0], t)
		require.Equal(w.t, t.Tick, open[n-1], "a run of %s passes over ticks: %+v", job.Name, t)
		job.Through = t.Tick
	}
	job.Recent = append(job.Recent, t)
}
