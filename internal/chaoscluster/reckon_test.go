package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Each pair of fires is judged by the state of the first fire when the second was sent.
func TestDoublesAreClassifiedByTruth(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	died := &connection{proven: at(10), ended: at(30)}
	log := newJournal()
	confirmed := map[string]any{"millrace-epoch": int64(1), "millrace-confirmed": int64(1), "millrace-above": "5,7-8"}
	log.read(50, confirmed, nil)
	log.read(90, nil, []byte(`{"type":"confirmed","epoch":1,"through":9}`))
	second := fire{55, 1}
	log.written[second] = 60
	for seq := range int64(8) {
		log.written[fire{1, seq}] = 10 + seq
	}
	again := &fate{sent: at(20)}

	for verdict, first := range map[string]struct {
		seq  int64
		fate *fate
	}{
		"journaled": {7, &fate{}},
		"open":      {2, &fate{connection: died}},
		"answered":  {3, &fate{acked: at(9), connection: died}},
		"stale":     {4, &fate{acked: at(5), connection: died}},
		"nacked":    {6, &fate{nacked: at(5), connection: died}},
		"unkept":    {8, &fate{acked: at(5), connection: died}},
		"unseen":    {9, nil},
	} {
		truth := newTruth()
		truth.fires[second] = again
		if first.fate != nil {
			truth.fires[fire{1, first.seq}] = first.fate
		}
		require.Equal(t, verdict, judge(fire{1, first.seq}, second, truth, log))

		j := newJobs()
		j.add("x", "q", at(0))
		j.arrive("x", fired(1, first.seq), false)
		j.arrive("x", fired(1, first.seq), true)
		require.Zero(t, countDoubles(j, truth, log).Total, "the broker gave one fire out twice")
		j.arrive("x", fired(second.epoch, second.seq), false)
		d := countDoubles(j, truth, log)
		require.Equal(t, 1, d.Total)
		require.Equal(t, 1, *d.of(verdict))
		require.Equal(t, map[string]int{"q": 1}, d.byQueue)
		require.Equal(t, 1, j.redelivered)
	}
}

func fired(epoch, seq int64) map[string]any {
	return map[string]any{"millrace-op": "fired", "millrace-epoch": epoch, "millrace-seq": seq}
}

// A fire that was confirmed, and did not arrive, came back as a copy. The fire of the copy doubles
// only the one before, which was open.
func TestFiresOfCopies(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	died := &connection{proven: at(10), ended: at(30)}
	first, copied, last := fire{1, 7}, fire{55, 1}, fire{55, 80}
	truth, log, jobs := newTruth(), newJournal(), newJobs()
	truth.fires[first] = &fate{jid: "x", sent: at(9), connection: died}
	truth.fires[copied] = &fate{jid: "x", sent: at(20), acked: at(21), connection: died}
	truth.fires[last] = &fate{jid: "x", sent: at(40), acked: at(41)}
	log.written[first], log.written[copied], log.written[last] = 10, 60, 2000
	log.read(70, map[string]any{"millrace-epoch": int64(55), "millrace-confirmed": int64(1)}, nil)
	jobs.add("x", "q", at(0))
	arrive := func(f fire) { jobs.arrive("x", fired(f.epoch, f.seq), false) }
	arrive(first)
	arrive(last)
	require.Equal(t, 1, countDoubles(jobs, truth, log).Open)
	arrive(copied)
	require.Equal(t, 1, countDoubles(jobs, truth, log).Journaled)
}

// Each kind of record that confirms fires does so from its offset on.
func TestJournalRecordsConfirms(t *testing.T) {
	headers := func(confirmed int64, more ...any) map[string]any {
		h := map[string]any{"millrace-epoch": int64(7), "millrace-confirmed": confirmed}
		for i := 0; i+1 < len(more); i += 2 {
			h[more[i].(string)] = more[i+1]
		}
		return h
	}
	j := newJournal()
	j.read(7, headers(0), []byte(`{"type":"opened","identity":"s1/x"}`))
	j.read(10, headers(1, "millrace-op", "fired", "millrace-seq", int64(3)), []byte(`{"type":"confirmed","epoch":7,"through":99}`))
	j.read(20, headers(1, "millrace-above", "4,6-8"), []byte(`{"type":"delivered","epoch":7}`))
	j.read(30, headers(2), []byte(`{"type":"confirmed","epoch":7,"through":5,"above":"9"}`))
	j.read(40, nil, []byte(`{"type":"opened","identity":"s2/y","known_confirmed":{"epoch":7,"through":11,"above":"13-14"}}`))
	require.Equal(t, []string{"s1/x", "s2/y"}, j.opened)
	require.Equal(t, int64(10), j.offset(fire{7, 3}))
	for seq, by := range map[int64]int64{1: 10, 2: 30, 4: 20, 5: 30, 7: 20, 9: 30, 10: 40, 13: 40} {
		at, said := j.confirmedAt(fire{7, seq})
		require.True(t, said, "%d", seq)
		require.Equal(t, by, at, "%d", seq)
	}
	for _, unknown := range []fire{{7, 12}, {8, 1}} {
		_, said := j.confirmedAt(unknown)
		require.False(t, said)
	}
	second := fire{40, 1}
	require.True(t, j.knew(fire{7, 10}, second), "it counts as not written")
	j.written[second] = 41
	require.True(t, j.knew(fire{7, 10}, second))
	j.read(50, headers(11), []byte(`{"type":"returned","epoch":7,"seq":4,"reason":"no answer"}`))
	require.False(t, j.knew(fire{7, 4}, second), "its leader knew only that it had no answer")

	// This is the last record of the leader.
	j.read(60, headers(12), []byte(`{"type":"confirmed","epoch":7,"through":12}`))
	j.written[second] = 60 + window
	require.False(t, j.knew(fire{7, 12}, second), "its leader may not have read them yet")
	j.written[second]++
	require.True(t, j.knew(fire{7, 12}, second))
}

// Copies that do not say which fire they are count, unless the broker redelivered them.
func TestCopiesWithoutHeaders(t *testing.T) {
	j := newJobs()
	j.add("x", "q", time.Now())
	j.confirm("x")
	require.Equal(t, []string{"x"}, j.missing())
	j.arrive("x", nil, false)
	j.arrive("x", nil, true)
	require.Zero(t, countDoubles(j, newTruth(), newJournal()).Total)
	j.arrive("x", nil, false)
	require.Equal(t, 1, countDoubles(j, newTruth(), newJournal()).Bare)
	j.arrive("never published", nil, false)
	require.Equal(t, 1, j.strange)
	require.Empty(t, j.missing())
}

// A second copy of a fire counts as redelivered only if the broker marks it so.
func TestCopiesOfOneFire(t *testing.T) {
	j := newJobs()
	j.add("x", "q", time.Now())
	headers := map[string]any{"millrace-op": "fired", "millrace-epoch": int64(7), "millrace-seq": int64(1)}
	j.arrive("x", headers, false)
	j.arrive("x", headers, true)
	require.Zero(t, j.again)
	j.arrive("x", headers, false)
	require.Equal(t, 1, j.again)
	require.Equal(t, 1, j.redelivered)
	require.Zero(t, countDoubles(j, newTruth(), newJournal()).Total, "it is one fire")
}

func TestLossesAreClassifiedByTruth(t *testing.T) {
	truth := newTruth()
	for i, f := range []*fate{
		{jid: "again", acked: time.Now(), sent: time.Unix(1, 0)}, {jid: "again", sent: time.Unix(2, 0)},
		{jid: "acked", acked: time.Now()}, {jid: "nacked", nacked: time.Now()},
	} {
		truth.fires[fire{1, int64(i)}] = f
	}
	l := countLosses([]string{"again", "acked", "nacked", "pending"}, truth)
	require.Equal(t, losses{Unfired: 1, Answered: 1, Nacked: 1, Open: 1}, l)
}

func TestStandstill(t *testing.T) {
	from := time.Now()
	j := newJobs()
	come := func(jid, queue string, after time.Duration) {
		j.add(jid, queue, from)
		j.came[jid] = &arrival{first: from.Add(after)}
	}
	come("a", "q", -time.Second)
	come("b", "q", time.Second)
	come("c", "other", 2*time.Second)
	come("d", "q", 4*time.Second)
	come("e", "q", time.Minute)
	q := map[string]bool{"q": true}
	require.Equal(t, 3*time.Second, standstill(j, q, from, from.Add(10*time.Second), false))
	require.Equal(t, 6*time.Second, standstill(j, q, from, from.Add(10*time.Second), true))
	require.Equal(t, 56*time.Second, standstill(j, q, from, from.Add(time.Hour), false))
	require.Zero(t, standstill(j, nil, from, from.Add(time.Hour), true))
	require.Equal(t, time.Second, firstAfter(j, q, from.Add(3*time.Second)))
	require.Zero(t, firstAfter(j, q, from.Add(time.Hour)))
}

func TestFlags(t *testing.T) {
	o, chosen, err := parse([]string{"-broker", "4.3,lavinmq", "-row", "3,16", "-full"}, t.Output())
	require.NoError(t, err)
	require.Equal(t, []string{rabbit43, lavinMQ}, chosen)
	require.Equal(t, []int{3, 16}, o.rows)
	require.Equal(t, 1000, o.rate)
	for _, args := range [][]string{{"-broker", "5"}, {"-row", "99"}, {"-row", "x"}, {"-hosts", "some"}, {"-runs", "0"}} {
		_, _, err := parse(args, t.Output())
		require.Error(t, err, "%v", args)
	}
}

// A run that is in the results file is not repeated, unless it was void, broke a bound, or had
// other settings.
func TestResume(t *testing.T) {
	o := options{commit: "c", broker: rabbit310, hosts: "one", rate: 100, slack: 1}
	r := rows()[0]
	table := &results{path: t.TempDir() + "/results", out: t.Output()}
	require.False(t, table.has(o, r, 0))
	res := result{Commit: "c", Broker: rabbit310, Row: r.number, Hosts: "one", Error: "void", Rate: 100, Slack: 1}
	require.NoError(t, table.add(res))
	require.False(t, table.has(o, r, 0))
	res.Error, res.Broken = "", []string{"1 lost"}
	require.NoError(t, table.add(res))
	require.False(t, table.has(o, r, 0))
	for _, other := range []func(*result){func(r *result) { r.Rate = 10 }, func(r *result) { r.Slack = 3 }} {
		res := result{Commit: "c", Broker: rabbit310, Row: r.number, Hosts: "one", Rate: 100, Slack: 1}
		other(&res)
		require.NoError(t, table.add(res))
	}
	require.False(t, table.has(o, r, 0))
	res.Broken = nil
	require.NoError(t, table.add(res))
	require.True(t, table.has(o, r, 0))
	require.False(t, table.has(o, r, 1))
	require.Equal(t, 2, table.broken)
}

// If a fire did not arrive, the next one followed because of it. Then it does not matter what the
// journal said about the first fire by that time.
func TestFireBetweenTwoThatArrived(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	first, lost, third := fire{1, 7}, fire{50, 1}, fire{90, 1}
	log := newJournal()
	log.written[first], log.written[lost], log.written[third] = 40, 53, 95
	// This is behind the record that opened the next epoch.
	log.read(52, map[string]any{"millrace-epoch": int64(1), "millrace-confirmed": int64(7)}, nil)
	j := newJobs()
	j.add("x", "q", at(0))
	j.arrive("x", fired(first.epoch, first.seq), false)
	j.arrive("x", fired(third.epoch, third.seq), false)
	truth := newTruth()
	truth.fires[first] = &fate{jid: "x", sent: at(1), acked: at(2), connection: &connection{proven: at(2)}}
	truth.fires[third] = &fate{jid: "x", sent: at(20)}
	require.Equal(t, 1, countDoubles(j, truth, log).Journaled, "no client sent it in between")
	truth.fires[lost] = &fate{jid: "x", sent: at(4)}
	d := countDoubles(j, truth, log)
	require.Equal(t, 1, d.Total)
	require.Equal(t, 1, d.Answered)
}
