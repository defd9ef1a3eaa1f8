package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/wire"
)

// later is a time far ahead, at which nothing of a test is due.
const later = 4102444800

// lineOf returns line n of a file with jobs in every state.
func lineOf(n int) string {
	job := fmt.Sprintf(`{"jid":"j%05d","class":"C%d","args":[%d,9007199254740993],"queue":"bulk","own":{"big":123456789012345678901234567890,"text":"<&>"}`, n, n%3, n)
	switch n % 4 {
	case 1:
		return job + fmt.Sprintf(`,"at":%d}`, later+n)
	case 2:
		return job + fmt.Sprintf(`,"retry_at":%d,"retry_count":2,"error_class":"Timeout","error_message":"late"}`, later+n)
	case 3:
		return job + fmt.Sprintf(`,"died_at":%d,"error_class":"Timeout"}`, 1795158930+n)
	}
	return job + "}"
}

// jobsFile writes a file with so many lines, and returns its path.
func jobsFile(t *testing.T, lines int) string {
	t.Helper()
	var text strings.Builder
	for n := range lines {
		text.WriteString(lineOf(n) + "\n")
	}
	return clitest.File(t, text.String())
}

// counted are the jobs that are found from outside, by jid.
type counted map[string]int

// take counts the jobs that are in a queue, and removes them.
func (c counted) take(t *testing.T, v *brokertest.Vhost, queue string) {
	t.Helper()
	for {
		d, ok := v.Get(t, queue)
		if !ok {
			return
		}
		c[gjson.GetBytes(d.Body, "jid").String()]++
	}
}

// list counts the jobs of a list.
func (c counted) list(t *testing.T, s *running, list string) {
	t.Helper()
	r := millrace(t, append([]string{list, "-o", "ndjson"}, s.flags...)...)
	require.Zero(t, r.code, r.err)
	for line := range strings.Lines(r.out) {
		c[gjson.Get(line, "jid").String()]++
	}
}

// eachOnce checks that every job was entered once.
func eachOnce(t *testing.T, v *brokertest.Vhost, s *running, lines int) {
	t.Helper()
	found := counted{}
	brokertest.Eventually(t, func() bool { return v.HasQueue(t, "queue.bulk") }, "the first job is delivered")
	brokertest.Eventually(t, func() bool {
		found.take(t, v, "queue.bulk")
		return len(found) >= (lines+3)/4
	}, "all jobs that are due are delivered")
	for _, list := range []string{"scheduled", "retries", "dead"} {
		found.list(t, s, list)
	}
	time.Sleep(time.Second) // in which a duplicate would be delivered
	found.take(t, v, "queue.bulk")
	for n := range lines {
		require.Equal(t, 1, found[fmt.Sprintf("j%05d", n)], "line %d", n)
	}
	require.Len(t, found, lines)
}

// entered returns how far an import has come.
func entered(t *testing.T, resume string) int64 {
	t.Helper()
	text, err := os.ReadFile(resume)
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(t, err)
	require.True(t, json.Valid(text), "%s", text)
	return gjson.GetBytes(text, "lines").Int()
}

// An import that is killed at random places and repeated enters each job once, with and without a
// resume file.
func TestKilledImportEntersEachJobOnce(t *testing.T) {
	t.Parallel()
	const lines, kills = 3000, 6
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	dir := t.TempDir()
	file, resume := jobsFile(t, lines), filepath.Join(dir, "resume")
	args := []string{"import", file, "--name", "killed", "--rate", "1500", "--amqp-url", v.AMQPURL(), s.flags[0], s.flags[1]}
	midway := 0
	for n := 0; n < kills || midway == 0 && n < 10*kills; n++ {
		run := args
		if n > 0 {
			run = append(slices.Clone(args), "--resume", resume)
		}
		cmd := clitest.Process(t, run...)
		require.NoError(t, cmd.Start())
		time.Sleep(time.Duration(200+50*n)*time.Millisecond + rand.N(1200*time.Millisecond)) // a slow machine needs longer to begin
		_ = cmd.Process.Kill()                                                               // it may have ended
		_ = cmd.Wait()
		if at := entered(t, resume); at > 0 && at < lines {
			midway++
		}
	}
	require.Positive(t, midway, "no run was killed midway")

	r := millrace(t, append(append(slices.Clone(args[:4]), "--resume", resume), s.flags...)...)
	require.Zero(t, r.code, r.err)
	require.EqualValues(t, lines, entered(t, resume))
	r = millrace(t, append(slices.Clone(args[:4]), s.flags...)...)
	require.Zero(t, r.code, r.err)
	require.Equal(t, "3000 jobs entered, 0 refused\n", r.out, "and the whole file once more")
	eachOnce(t, v, s, lines)
}

func TestInterruptedImportContinues(t *testing.T) {
	t.Parallel()
	const lines = 1200
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	file, resume := jobsFile(t, lines), filepath.Join(t.TempDir(), "resume")
	args := []string{"import", file, "--name", "interrupted", "--resume", resume, "--amqp-url", v.AMQPURL(), s.flags[0], s.flags[1]}
	cmd := clitest.Process(t, append(slices.Clone(args), "--rate", "300")...)
	var said bytes.Buffer
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	brokertest.Eventually(t, func() bool { return entered(t, resume) > 0 }, "the first lines are entered")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	require.Equal(t, 1, exit.ExitCode(), "%s", &said)
	at := entered(t, resume)
	require.Less(t, at, int64(lines))
	require.Contains(t, said.String(), fmt.Sprintf("millrace: interrupted; the same command continues with line %d\n", at+1))

	r := millrace(t, args...)
	require.Zero(t, r.code, r.err)
	require.Equal(t, fmt.Sprintf("%d jobs entered, 0 refused\n", lines-at), r.out)
	r = millrace(t, args...)
	require.Equal(t, "0 jobs entered, 0 refused\n", r.out, r.err)
	eachOnce(t, v, s, lines)
}

// streamsAreEmpty checks that nothing was entered.
func streamsAreEmpty(t *testing.T, v *brokertest.Vhost) {
	t.Helper()
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Gated} {
		for _, record := range v.ReadStream(t, stream) { // the leader's own have no job
			require.False(t, gjson.GetBytes(record.Body, "job").Exists() || gjson.GetBytes(record.Body, "class").Exists(), "%s: %s", stream, record.Body)
		}
	}
	require.False(t, v.HasQueue(t, "queue.bulk"))
}

func TestDryRunsAndWrongMapsEnterNothing(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	file := jobsFile(t, 40)
	run := func(more ...string) result {
		return millrace(t, append([]string{"import", file, "--name", "dry", "--amqp-url", v.AMQPURL(), s.flags[0], s.flags[1]}, more...)...)
	}
	r := run("--dry-run")
	require.Zero(t, r.code, r.err)
	require.Contains(t, r.out, "40 jobs would be entered, nothing was\n")
	require.Regexp(t, `due +C0 +bulk +4\n`, r.out)
	require.Contains(t, r.out, "line 1: {\"command\":\"enqueue\",\"key\":\"import:dry:j00000\",\"job\":"+lineOf(0)+"}\n")

	for file, reason := range map[string]string{
		"class: class\nqueu: queue":                "line 2 of the map: a job has no field \"queu\"",
		"queue: queue":                             "the map has no field class",
		"class: klass":                             "none of the first 40 lines becomes a job, so nothing was entered: line 1:",
		"class: class\nat: {from: jid, unit: iso}": "none of the first 40 lines becomes a job, so nothing was entered: line 1: at: jid (\"j00000\") is not like",
	} {
		r := run("--map", clitest.File(t, file))
		require.Equal(t, 2, r.code, r.err)
		require.Contains(t, r.err, reason)
	}
	streamsAreEmpty(t, v)
}

func TestRefusedLinesAreWrittenToAFile(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	s := start(t, beside(v))
	s.leads(t)
	rejected := filepath.Join(t.TempDir(), "rejected")
	file := clitest.File(t, lineOf(0)+"\n{\"class\":\n"+lineOf(1)+"\n"+strings.Replace(lineOf(1), "[1,", "[2,", 1)+"\n{\"jid\":\"x\"}\n")
	r := millrace(t, append([]string{"import", file, "--name", "refused", "--rejected", rejected}, s.flags...)...)
	require.Equal(t, 1, r.code)
	require.Equal(t, "2 jobs entered, 3 refused\n", r.out)
	require.Equal(t, "millrace: 3 lines were refused: "+rejected+" has the reasons\n", r.err)
	text, err := os.ReadFile(rejected)
	require.NoError(t, err)
	var lines, reasons []string
	for line := range strings.Lines(string(text)) {
		lines = append(lines, gjson.Get(line, "line").Raw)
		reasons = append(reasons, gjson.Get(line, "reason").String())
	}
	require.Contains(t, reasons[0], "it is not valid JSON at character 9")
	require.Contains(t, reasons[1], "the leader entered another job under this jid and --name within the last day")
	require.Contains(t, reasons[2], `member "class" is missing`)
	require.Equal(t, "2", lines[0])
	require.Contains(t, []string{"3", "4"}, lines[1], "one of the two that differ")
	require.Contains(t, string(text), `"big":123456789012345678901234567890,"text":"<&>"`)
}

// What the export prints, the import enters byte for byte: here into another virtual host.
func TestExportAndImportAreARoundTrip(t *testing.T) {
	t.Parallel()
	from, to := brokertest.New(t), brokertest.New(t)
	a, b := start(t, beside(from)), start(t, beside(to))
	a.leads(t)
	b.leads(t)
	job := `{"jid":"%s", "class":"C","args":[12345678901234567890, 1.10,"<é>"],"own" : {"x":1e400},"queue":"bulk"}`
	var records []string
	for stream, record := range map[string]string{
		wire.ScheduledJobs: `{"type":"scheduled_job","jid":"s%[1]d","scheduled_at":4102444800.25,"job":%[2]s}`,
		wire.Retries:       `{"type":"retry","jid":"r%[1]d", "retry_at":4102444800.0,"retry_count":3,"own":[ 1 ],"error_class":"E","job":%[2]s}`,
		wire.DeadJobs:      `{"died_at":1795158930.000001,"jid":"d%[1]d","error_message":"\u00e9","backtrace":"a\nb","job":%[2]s }`,
	} {
		for n := range 3 {
			text := fmt.Sprintf(record, n, fmt.Sprintf(job, fmt.Sprintf("%s%d", stream[:1], n)))
			records = append(records, text)
			from.Publish(t, "", stream, amqp.Publishing{Body: []byte(text)})
		}
	}
	slices.Sort(records)
	exported := func(s *running, more ...string) (lines []string) {
		r := millrace(t, append(append([]string{"export"}, more...), s.flags...)...)
		require.Zero(t, r.code, r.err)
		for line := range strings.Lines(r.out) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
		slices.Sort(lines)
		return lines
	}
	brokertest.Eventually(t, func() bool { return len(exported(a)) == len(records) }, "all are listed")
	require.Equal(t, records, exported(a))
	require.Len(t, exported(a, "dead"), 3)
	require.Len(t, exported(a, "dead", "--jid", "d1"), 1)

	file := clitest.File(t, strings.Join(exported(a), "\n"))
	r := millrace(t, append([]string{"import", file, "--name", "trip"}, b.flags...)...)
	require.Equal(t, "9 jobs entered, 0 refused\n", r.out, r.err)
	brokertest.Eventually(t, func() bool { return len(exported(b)) == len(records) }, "all are listed there")
	require.Equal(t, records, exported(b))
}

func TestImportWithoutASidecarEndsWithAnError(t *testing.T) {
	t.Parallel()
	v := brokertest.New(t)
	r := millrace(t, "import", jobsFile(t, 4), "--name", "alone", "--timeout", "1s", "--amqp-url", v.AMQPURL(), "--http-addr", "127.0.0.1:1")
	require.Equal(t, 1, r.code)
	require.Regexp(t, `millrace: line \d: given up after \ds: (no sidecar leads|no sidecar answers at|the broker has no stream)`, r.err)
}
