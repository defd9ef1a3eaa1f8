package scheduler

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// defines sends a document with definitions.
func (sc *scene) defines(s *modelSidecar, layer string, jobs ...string) wire.Reply {
	sc.t.Helper()
	d := &wire.Definitions{Source: "test", Layer: layer, PeriodicJobs: []json.RawMessage{}}
	for _, j := range jobs {
		d.PeriodicJobs = append(d.PeriodicJobs, json.RawMessage(j))
	}
	return sc.ask(s, wire.Command{Command: wire.CommandDefine, Definitions: d})
}

// outcomes lists the outcomes that a sidecar knows of a job, ticks relative to the beginning.
func (sc *scene) outcomes(s *modelSidecar, name string) (all []string) {
	j := s.entries.Periodics.PeriodicJob(name)
	require.NotNil(sc.t, j)
	for _, t := range j.Recent {
		text := fmt.Sprintf("%d %s", t.Tick-begun, t.Outcome)
		if t.Count > 0 {
			text = fmt.Sprintf("%d-%s", t.From-begun, text)
		}
		if t.Why != "" {
			text += " " + t.Why
		}
		all = append(all, text)
	}
	return all
}

// begun is when scenes begin.
const begun = 1_800_000_000

const everyTen = `{"name":"ten","every":10,"job":{"class":"C","queue":"q","args":[1]}%s}`

// until lets a leader work until a time after the beginning.
func (sc *scene) until(s *modelSidecar, seconds int) {
	for sc.now.Unix() < begun+int64(seconds) {
		sc.rounds(s, 1, nil)
	}
	sc.rounds(s, 5, nil)
}

func TestTicksMakeJobs(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	require.Equal(t, []string{"ten"}, sc.defines(s, "", fmt.Sprintf(everyTen, "")).Defined.Made)
	sc.until(s, 30)
	require.Equal(t, []string{"10 made", "20 made", "30 made"}, sc.outcomes(s, "ten"))
	for _, tick := range []int64{10, 20, 30} {
		require.Equal(t, 1, sc.copies()[wire.TickJID("ten", begun+tick)])
	}
	fired := sc.broker.streams[wire.Journal].get(sc.broker.copies[0].record)
	job, err := wire.ParseJob(fired.Body)
	require.NoError(t, err)
	require.Equal(t, "C", job.Class)
	require.Contains(t, string(fired.Body), fmt.Sprintf(`"periodic":{"name":"ten","tick":%d}`, begun+10))
}

// A sidecar that follows decides about what was due while none led.
func TestTicksThatAreLate(t *testing.T) {
	for more, want := range map[string][]string{
		`,"grace":36`:                                    {"10 made", "20-60 skipped missed", "70 made", "80 made", "90 made", "100 made"},
		`,"grace":1`:                                     {"10 made", "20-100 skipped missed"},
		`,"grace":1,"catch_up":"last"`:                   {"10 made", "20-90 skipped missed", "100 made"},
		`,"grace":1,"catch_up":"all"`:                    {"10 made", "20 made", "30 made", "40 made", "50 made", "60 made", "70 made", "80 made", "90 made", "100 made"},
		`,"grace":1,"catch_up":"all","catch_up_max":2`:   {"10 made", "20-80 skipped missed", "90 made", "100 made"},
		`,"grace":100`:                                   {"10 made", "20 made", "30 made", "40 made", "50 made", "60 made", "70 made", "80 made", "90 made", "100 made"},
		`,"grace":36,"catch_up":"last"`:                  {"10 made", "20-60 skipped missed", "70 made", "80 made", "90 made", "100 made"},
		`,"grace":1,"except":["2027-01-01..2027-01-31"]`: {"10-10 skipped except"},
	} {
		sc := newScene(t)
		a := sc.leader("a")
		require.Equal(t, wire.StatusOK, sc.defines(a, "", fmt.Sprintf(everyTen, more)).Status)
		sc.until(a, 12)
		a.disconnect()
		sc.now = time.Unix(begun+102, 0)
		b := sc.leader("b")
		sc.rounds(b, 40, nil)
		got := sc.outcomes(b, "ten")
		if want[0] == "10-10 skipped except" {
			require.Contains(t, got, "20-100 skipped except")
			continue
		}
		require.Equal(t, want, got[:len(want)], more)
	}
}

// A leader that dies at any publish leaves no tick without an outcome, and none with two jobs.
func TestTicksSurviveDeathAtAnyPublish(t *testing.T) {
	for dies := range 12 {
		sc := newScene(t)
		a := sc.leader("a")
		sc.defines(a, "", fmt.Sprintf(everyTen, ""))
		sc.until(a, 8)
		n := 0
		for sc.now.Unix() < begun+25 {
			if sc.rounds(a, 1, func(wire.Message) bool { n++; return n > dies }) {
				break
			}
		}
		a.disconnect()
		b := sc.leader("b")
		sc.until(b, 40)
		require.Equal(t, []string{"10 made", "20 made", "30 made", "40 made"}, sc.outcomes(b, "ten"), "death after %d publishes", dies)
		for _, tick := range []int64{10, 20, 30, 40} {
			require.Equal(t, 1, sc.copies()[wire.TickJID("ten", begun+tick)], "tick %d, death after %d publishes", tick, dies)
		}
	}
}

func TestLayersOfDefinitions(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.defines(s, "", fmt.Sprintf(everyTen, ""), `{"name":"other","every":60,"job":{"class":"O"}}`)
	require.Equal(t, 2, sc.defines(s, "", fmt.Sprintf(everyTen, ""), `{"name":"other","every":60,"job":{"class":"O"}}`).Defined.Unchanged)

	taken := sc.ask(s, wire.Command{Command: wire.CommandDefine, Definitions: &wire.Definitions{Source: "second", PeriodicJobs: []json.RawMessage{json.RawMessage(fmt.Sprintf(everyTen, ""))}}})
	require.Equal(t, wire.StatusConflict, taken.Status)

	sc.defines(s, wire.LayerOperator, `{"name":"ten","cron":"0 3 * * *","job":{"queue":"night"}}`)
	def, err := s.entries.Periodics.PeriodicJob("ten").Definition()
	require.NoError(t, err)
	require.Equal(t, "0 3 * * *", def.Cron)
	require.Zero(t, def.Every, "the operator's cron replaces the code's every")
	require.JSONEq(t, `{"class":"C","args":[1],"queue":"night"}`, string(def.Job))

	require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandPause, Periodic: "ten"}).Status)
	gone := sc.defines(s, "", `{"name":"ten","every":30,"job":{"class":"C","queue":"q"}}`)
	require.Equal(t, []string{"other"}, gone.Defined.Forgotten)
	require.Equal(t, []string{"ten"}, gone.Defined.Changed)
	require.Nil(t, s.entries.Periodics.PeriodicJob("other"))
	def, err = s.entries.Periodics.PeriodicJob("ten").Definition()
	require.NoError(t, err)
	require.True(t, def.Paused, "a deploy does not resume what an operator paused")

	require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandForget, Periodic: "ten", Layer: wire.LayerOperator}).Status)
	def, err = s.entries.Periodics.PeriodicJob("ten").Definition()
	require.NoError(t, err)
	require.Equal(t, int64(30), def.Every)
	sc.defines(s, "")
	require.Empty(t, s.entries.Periodics.PeriodicJobs())
	require.Equal(t, wire.StatusNotFound, sc.ask(s, wire.Command{Command: wire.CommandRun, Periodic: "ten"}).Status)

	for _, bad := range []string{`{"name":"x","every":10}`, `{"name":"x","cron":"* * *","job":{"class":"C"}}`, `{"name":"x","every":10,"tz":"Mars/Base","job":{"class":"C"}}`, `{"name":"x","job":{"class":"C"}}`} {
		require.Equal(t, wire.StatusBad, sc.defines(s, "", bad).Status, bad)
	}
}

func TestPausedSkippedAndRun(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.defines(s, "", fmt.Sprintf(everyTen, ""))
	skip := sc.ask(s, wire.Command{Command: wire.CommandSkip, Periodic: "ten"})
	require.Equal(t, int64(begun+10), skip.Tick)
	at := int64(begun + 30)
	require.Equal(t, at, sc.ask(s, wire.Command{Command: wire.CommandSkip, Periodic: "ten", Tick: &at}).Tick)
	require.Equal(t, wire.StatusConflict, sc.ask(s, wire.Command{Command: wire.CommandSkip, Periodic: "ten", Tick: &at}).Status)
	sc.until(s, 32)
	require.Equal(t, []string{"10 skipped asked", "20 made", "30 skipped asked"}, sc.outcomes(s, "ten"))

	cmd := wire.Command{ID: "once", Command: wire.CommandRun, Periodic: "ten"}
	ran := sc.ask(s, cmd)
	require.Equal(t, 1, sc.copies()[ran.JID])
	require.True(t, sc.ask(s, cmd).Repeated)
	require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandPause, Periodic: "ten"}).Status)
	sc.until(s, 42)
	require.Equal(t, wire.StatusDone, sc.ask(s, wire.Command{Command: wire.CommandResume, Periodic: "ten"}).Status)
	sc.until(s, 52)
	got := sc.outcomes(s, "ten")
	require.Equal(t, []string{"40 skipped paused", "50 made"}, got[len(got)-2:])
	require.Equal(t, 3, sc.journaled()[wire.TypeDefined], "one definition, a pause and a resume")
}

// The first epoch of a new leader has the new format, also if nothing is defined. Jobs that the
// leader before has left are fired once.
func TestJournalOfOlderFormatIsContinued(t *testing.T) {
	sc := newScene(t)
	old := wire.JournalRecord{Type: wire.TypeOpened, Format: 2, Identity: "old"}.Append(wire.Journal, 0, 0)
	old.Headers[wire.HeaderFormat] = int64(2)
	sc.broker.append(wire.Journal, millrace, old)
	barrier := wire.JournalRecord{Type: wire.TypeBarrier, Epoch: 0}.Append(wire.ScheduledJobs, 0, 0)
	sc.broker.append(wire.ScheduledJobs, millrace, barrier)
	sc.due("j", "q")
	s := sc.leader("new")
	sc.rounds(s, 5, nil)
	require.Equal(t, 1, sc.copies()["j"])
	var formats []int64
	for _, r := range sc.broker.streams[wire.Journal].records {
		formats = append(formats, wire.HeaderInt(r.Headers, wire.HeaderFormat))
	}
	require.Equal(t, int64(2), formats[0])
	for _, f := range formats[1:] {
		require.Equal(t, int64(wire.Format), f)
	}
	require.Zero(t, sc.journaled()[wire.TypeState], "an installation without periodic jobs pays nothing")
}

// A tick is skipped while the job of the last one waits.
func TestOverlappingTicksAreSkipped(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.broker.full["q"] = true
	sc.defines(s, "", fmt.Sprintf(everyTen, `,"overlap":"skip"`))
	sc.until(s, 22)
	require.Equal(t, []string{"10 made", "20 skipped overlap"}, sc.outcomes(s, "ten"))
}

// While the outcome of a tick is on its way, nothing is decided about the job.
func TestTicksWaitForOutcomesOnTheirWay(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.defines(s, "", fmt.Sprintf(everyTen, `,"paused":true`))
	sc.until(s, 8)
	for range 5 { // the broker is slow
		sc.now = sc.now.Add(1100 * time.Millisecond)
		require.NoError(t, s.step(sc.now))
	}
	sc.until(s, 22)
	require.Equal(t, []string{"10 skipped paused", "20 skipped paused"}, sc.outcomes(s, "ten"))
}

// Skipped ticks that lie ahead, because a clock was, are decided again. Those with a job are not.
func TestClockThatWasAhead(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	sc.defines(s, "", fmt.Sprintf(everyTen, `,"grace":1,"catch_up":"last"`))
	sc.until(s, 12)
	sc.now = time.Unix(begun+1001, 0)
	sc.rounds(s, 10, nil)
	require.Equal(t, []string{"10 made", "20-990 skipped missed", "1000 made"}, sc.outcomes(s, "ten"))
	sc.now = time.Unix(begun+14, 0)
	sc.until(s, 30)
	require.Equal(t, []string{"10 made", "14 void", "20 made", "30 made", "1000 made"}, sc.outcomes(s, "ten"))
	sc.now = time.Unix(begun+985, 0)
	sc.until(s, 1012)
	require.Equal(t, 1, sc.copies()[wire.TickJID("ten", begun+1000)])
	require.Equal(t, 1, sc.copies()[wire.TickJID("ten", begun+1010)])
}

// What low water would forget is written again, also that there is nothing left.
func TestPeriodicJobsAreCarriedOver(t *testing.T) {
	sc := newScene(t)
	s := sc.leader("a")
	for i := range maxPiece + 3 {
		sc.ask(s, wire.Command{Command: wire.CommandDefine, Definitions: &wire.Definitions{Source: fmt.Sprint(i),
			PeriodicJobs: []json.RawMessage{json.RawMessage(fmt.Sprintf(`{"name":"job-%03d","cron":"0 3 * * *","job":{"class":"C"}}`, i))}}})
	}
	fresh := sc.carriesOver(s, "fresh")
	require.Equal(t, s.entries.Periodics.PeriodicJobs(), fresh.entries.Periodics.PeriodicJobs())
	require.Len(t, fresh.entries.Periodics.PeriodicJobs(), maxPiece+3)
}
