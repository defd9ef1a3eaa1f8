package main

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

var tiny = size{perSecond: 50, lasting: time.Second, burst: 300, entries: 1000, jobs: 500, limited: limitedSize{handovers: 20, waiting: 500, periodic: 20, rated: 1}, warm: 100, languages: []string{"go"}, produced: 500,
	pending: 500, fired: 500, idle: 100 * time.Millisecond, asked: askedSize{50, 100}, metrics: 500, viewers: 5}

func TestEveryFigureIsMeasured(t *testing.T) {
	if err := localbroker.Available(); err != nil {
		t.Skip(err)
	}
	text := measured(t, options{runs: 1, size: tiny})
	for _, figure := range []string{
		"lateness at 50 due a second, p50", "lateness at 50 due a second, p99", "burst of 300 due at one instant",
		"delayed messages, 50 due a second, p50", "delayed messages, 50 due a second, p99", "300 delayed messages due at one instant",
		"1000 entries into the view, native", "1000 entries into the view, amqp",
		"500 jobs enqueued and done", "500 limited jobs enqueued and done, limit 10, beside plain ones", "500 limited jobs enqueued and done, limit 100, beside plain ones", "500 plain jobs enqueued and done, with a limit for others, beside none", "500 jobs worked off, go", "confirmed enqueues one by one, go", "confirmed enqueues, 500 at once, go",
		"a confirmed enqueue at 50 a second, p50", "from enqueue to handler at 50 a second, p99",
		"500 pending, 500 fired: ready without a state dir", "metric records folded, native",
	} {
		require.Regexp(t, figure+` .*\d+\.\d\d`, text) // a ratio
	}
	for _, figure := range []string{
		"ready after a restart", "CPU while nothing happens", "memory", "a page of 100, p99", "a jid, p99", "the overview, p99",
		"the overview, p99 within its handler while 100 jobs a second flow", "memory without a state dir",
	} {
		require.Regexp(t, `500 fired: `+figure+` .*(met|MISSED)`, text)
	}
	require.Regexp(t, `500 fired: an answer that says nothing, p99 while 100 jobs a second flow +\d`, text)
	require.Regexp(t, `500 metric records a second, one a message: worst lag .*(met|MISSED)`, text)
	require.Regexp(t, `CPU for a job +\d+\.\d µs .*(met|MISSED)`, text)
	require.Regexp(t, `CPU for 5 viewers of events .*(met|MISSED)`, text)
	require.Regexp(t, `jobs that came early.* 0 +at most 0 +met`, text)
	require.Contains(t, text, "RabbitMQ")
}

func TestPartsCanBeProfiled(t *testing.T) {
	if err := localbroker.Available(); err != nil {
		t.Skip(err)
	}
	prefix := filepath.Join(t.TempDir(), "p")
	text := measured(t, options{runs: 1, size: tiny, only: "burst,cost,million", cpuProfile: prefix})
	require.Contains(t, text, "burst of 300 due at one instant")
	require.FileExists(t, prefix+"-burst.pprof")
	require.FileExists(t, prefix+"-cost.pprof")
	require.FileExists(t, prefix+"-rebuild.pprof")
}

func measured(t *testing.T, o options) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, measure(t.Context(), o, &out, io.Discard))
	t.Log(out.String())
	return out.String()
}

func TestTableShowsMissingFigures(t *testing.T) {
	table := newTable()
	for _, ms := range []float64{7, 30, 6} {
		table.add("p50", millis, atMost(0.005), ms/1000, 0.001)
		table.add("p99", millis, atMost(0.025), ms/1000, 0.001)
	}
	table.add("slow", perSecond, ratioAtLeast(0.7), 500, 1000)
	table.add("fast", perSecond, ratioAtLeast(0.7), 700, 1000)
	table.addWorst("early", count, atMost(0), 0)
	table.addWorst("early", count, atMost(0), 2)
	table.addAlone("idle", percent, atMost(0.005), 0.02)
	require.Len(t, table.addAlone("idle", percent, atMost(0.01), 0), 2)
	var out bytes.Buffer
	table.print(&out, "about")
	for _, line := range []string{
		`p50 +7\.00 ms \(6\.00 ms to 30\.00 ms\) +1\.00 ms \(1\.00 ms to 1\.00 ms\) +7\.00 +at most 5\.00 ms +MISSED by 2\.00 ms`,
		`p99 .* +at most 25\.00 ms +met`,
		`slow +500/s +1000/s +0\.50 +ratio at least 0\.70 +MISSED by 0\.20`,
		`fast +700/s +1000/s +0\.70 +ratio at least 0\.70 +met`,
		`early +2 +at most 0 +MISSED by 2`,
		`idle +1\.00 % \(0\.00 % to 2\.00 %\) +at most 1\.00 % +met`,
	} {
		require.Regexp(t, line, out.String())
	}
}

func TestCompareFindsWhatGotWorse(t *testing.T) {
	now, again := newTable(), newTable()
	for _, of := range []*table{now, again} {
		for i, ms := range []float64{10, 11, 10.5} {
			of.addAlone("slower", millis, noTarget, ms/1000)
			of.addAlone("noisy", millis, noTarget, []float64{5, 20, 10}[i]/1000)
			of.addAlone("same", millis, noTarget, ms/1000)
			of.add("rate", perSecond, noTarget, 500, 1000)
			of.addAlone("new", count, noTarget, 1)
		}
	}
	before := newTable()
	for _, ms := range []float64{5, 5.1, 5.2} {
		before.addAlone("slower", millis, noTarget, ms/1000)
		before.addAlone("noisy", millis, noTarget, ms/1000)
		before.addAlone("same", millis, noTarget, 0.0105)
		before.add("rate", perSecond, noTarget, 900, 1000)
	}
	file := filepath.Join(t.TempDir(), "before.json")
	require.NoError(t, before.save(file))
	then, err := load(file)
	require.NoError(t, err)
	var out bytes.Buffer
	err = compare(&out, then, now, again)
	require.ErrorIs(t, err, errWorse)
	require.ErrorContains(t, err, ": slower, rate")
	require.Regexp(t, `slower +2\.059 +1\.000 +1\.050 +WORSE`, out.String())
	require.Regexp(t, `noisy +1\.961 +1\.000 +2\.000 *\n`, out.String())
	require.Regexp(t, `rate +0\.556 +1\.000 +1\.000 +WORSE`, out.String())
	require.NotContains(t, out.String(), "new")
	require.NoError(t, compare(&out, stored{"same": then["same"]}, now, again))
}

func TestQuantiles(t *testing.T) {
	all := make([]time.Duration, 100)
	for i := range all {
		all[99-i] = time.Duration(i + 1)
	}
	require.EqualValues(t, 50, quantile(all, 0.5))
	require.EqualValues(t, 99, quantile(all, 0.99))
	require.EqualValues(t, 100, quantile(all, 1))
	require.EqualValues(t, 1, quantile(all, 0))
	require.InDelta(t, 2.5, median([]float64{4, 1, 3, 2}), 1e-9)
}

func TestOptions(t *testing.T) {
	o, err := parse([]string{"-quick", "-only", "burst,read"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 1, o.runs)
	require.Equal(t, quickSize, o.size)
	require.True(t, o.wants("burst"))
	require.False(t, o.wants("lateness"))
	o, err = parse([]string{"-quick", "-runs", "3", "-lang", "ruby,java"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 3, o.runs)
	require.Equal(t, []string{"ruby", "java"}, o.size.languages)
	o, err = parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 5, o.runs)
	require.Equal(t, fullSize, o.size)
	for _, bad := range [][]string{{"-runs", "0"}, {"-only", "speed"}, {"more"}, {"-nonsense"}, {"-lang", "cobol"}} {
		_, err := parse(bad, io.Discard)
		require.Error(t, err, bad)
	}
}
