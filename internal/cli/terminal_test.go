package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/cli/output"
)

// session is a millrace that runs on a terminal.
type session struct {
	person *os.File
	seen   *clitest.Buffer
	exit   func() int
}

// onTerminal runs a command line as a process on a terminal of its own.
func onTerminal(t *testing.T, columns uint16, env []string, args ...string) *session {
	t.Helper()
	person, program := clitest.OpenTerminal(t, columns, 24)
	cmd := clitest.Process(t, args...)
	cmd.Env = append(append(cmd.Env, "TERM=xterm", "NO_COLOR="), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	require.NoError(t, cmd.Start())
	s := &session{person: person, seen: &clitest.Buffer{}}
	go func() {
		chunk := make([]byte, 4096)
		for {
			n, err := person.Read(chunk)
			_, _ = s.seen.Write(chunk[:n])
			if err != nil {
				return
			}
		}
	}()
	s.exit = func() int {
		_ = cmd.Wait()
		return cmd.ProcessState.ExitCode()
	}
	return s
}

func (s *session) shows(t *testing.T, text string) {
	t.Helper()
	brokertest.Eventually(t, func() bool { return strings.Contains(s.seen.String(), text) }, "the terminal shows %q", text)
}

const oneQueue = `{"name":"mails","state":"running","ready":12,"unacked":3,"consumers":1}`

func TestDestructionIsConfirmedOnTerminal(t *testing.T) {
	for line, question := range map[string]string{
		"queues purge mails":     `Delete 12 jobs that wait in queue "mails"? [y/N]`,
		"queues delete mails":    `Delete queue "mails" with 15 jobs in it? [y/N]`,
		"dead delete abc":        "Delete dead job abc? [y/N]",
		"retries kill abc":       "Move retry abc to the dead jobs? [y/N]",
		"job delete abc":         "Delete job abc? [y/N]",
		"rejected delete dead 7": "Remove rejected record 7 of dead from the list? [y/N]",
	} {
		t.Run(line, func(t *testing.T) {
			a := clitest.NewAPI(t, 200, oneQueue)
			args := append(strings.Fields(line), "--http-addr", a.Addr())
			s := onTerminal(t, 80, nil, args...)
			s.shows(t, question)
			_, err := s.person.WriteString("n\n")
			require.NoError(t, err)
			require.Equal(t, ExitFailed, s.exit())
			s.shows(t, "millrace: nothing was changed")
			for _, asked := range a.Asked() {
				require.True(t, strings.HasPrefix(asked, "GET "), asked)
			}

			s = onTerminal(t, 80, nil, args...)
			s.shows(t, question)
			_, err = s.person.WriteString("y\n")
			require.NoError(t, err)
			require.Zero(t, s.exit(), s.seen.String())
			asked := a.Asked()
			require.False(t, strings.HasPrefix(asked[len(asked)-1], "GET "), asked)

			a = clitest.NewAPI(t, 200, oneQueue)
			r := millrace(t, append(strings.Fields(line), "--http-addr", a.Addr())...)
			require.Equal(t, ExitUsage, r.code)
			require.Contains(t, r.err, strings.TrimSuffix(question, " [y/N]")+" There is no terminal to ask on: add --yes to do it\n")
			for _, asked := range a.Asked() {
				require.True(t, strings.HasPrefix(asked, "GET "), asked)
			}
		})
	}
}

// More jobs may have come after the question.
func TestPurgePrintsWhatBrokerDeleted(t *testing.T) {
	a := clitest.NewAPI(t, 200, `{"name":"mails","ready":12,"purged":14}`)
	r := millrace(t, "queues", "purge", "mails", "--yes", "--reason", "spilled", "--http-addr", a.Addr())
	require.Equal(t, "queue \"mails\" purged: 14 jobs deleted\n", r.out, r.err)
	require.Equal(t, `DELETE /api/job-queues/mails/jobs application/json {"reason":"spilled"}`, a.Asked()[len(a.Asked())-1])
}

func TestReleasePromptNamesJobCount(t *testing.T) {
	a := clitest.NewAPI(t, 200, `{"scheduler":{"gap":"it is new"},"before":21}`)
	r := millrace(t, "release", "--http-addr", a.Addr())
	require.Equal(t, ExitUsage, r.code)
	require.Contains(t, r.err, "Deliver 42 jobs now that are held and due?")
	r = millrace(t, "release", "--discard", "--yes", "--http-addr", a.Addr())
	require.Equal(t, "released: 42 jobs that were due are deleted now, the others when they are due\n", r.out, r.err)
	require.Equal(t, `POST /api/release application/json {"discard":true}`, a.Asked()[len(a.Asked())-1])
}

func TestStoppingAllProcessesIsConfirmed(t *testing.T) {
	a := clitest.NewAPI(t, 200, `{"processes":{"running":3}}`)
	r := millrace(t, "processes", "stop", "*", "--http-addr", a.Addr())
	require.Equal(t, ExitUsage, r.code)
	require.Contains(t, r.err, "Ask all processes (3) to stop?")
	r = millrace(t, "processes", "stop", "*", "-y", "--reason", "deploy", "--http-addr", a.Addr())
	require.Equal(t, "asked all processes (3) to stop\n", r.out, r.err)
	require.Equal(t, `PUT /api/processes/%2A/stop application/json {"reason":"deploy"}`, a.Asked()[len(a.Asked())-1])
}

const twoRetries = `{"total_count":2,"filtered_count":2,"page":1,"next":null,"items":[
  {"jid":"0123456789abcdef0123456789abcdef","error_class":"Timeout","error_message":"no answer from the mail server within thirty seconds, and the connection was closed",
   "job":{"args":[]},"millrace":{"at":1798135200,"queue":"newsletters","class":"SendNewsletter","attempt":3}},
  {"jid":"fedcba9876543210fedcba9876543210","error_class":"Ω","error_message":"日本語のエラーメッセージがここにあります","job":{},"millrace":{"at":1798135200,"queue":"q","class":"C","attempt":1}}]}`

func TestTablesFitTerminal(t *testing.T) {
	a := clitest.NewAPI(t, 200, twoRetries)
	for _, columns := range []uint16{40, 60, 80, 100, 120, 200} {
		s := onTerminal(t, columns, []string{"NO_COLOR=1"}, "retries", "--http-addr", a.Addr())
		require.Zero(t, s.exit(), s.seen.String())
		s.shows(t, "2 in all")
		for line := range strings.Lines(s.seen.String()) {
			require.LessOrEqual(t, output.Cells(strings.TrimRight(line, "\r\n")), int(columns), line)
		}
		if columns >= 120 {
			require.Contains(t, s.seen.String(), "0123456789abcdef0123456789abcdef")
		}
	}
	s := onTerminal(t, 80, []string{"NO_COLOR=1"}, "retries", "-o", "wide", "--http-addr", a.Addr())
	require.Zero(t, s.exit())
	s.shows(t, "within thirty seconds, and the connection was closed")
	r := millrace(t, "retries", "--http-addr", a.Addr())
	require.Contains(t, r.out, "0123456789abcdef0123456789abcdef", "a pipe gets whole ids")
}

func TestColour(t *testing.T) {
	a := clitest.NewAPI(t, 200, `{"items":[{"kind":"no_consumer","severity":"critical","subject":"low","text":"12 jobs wait"}]}`)
	const red = "\x1b[31mcritical\x1b[0m"
	s := onTerminal(t, 80, nil, "attention", "--http-addr", a.Addr())
	require.Zero(t, s.exit())
	s.shows(t, red)
	for _, env := range []string{"NO_COLOR=1", "TERM=dumb"} {
		s := onTerminal(t, 80, []string{env}, "attention", "--http-addr", a.Addr())
		require.Zero(t, s.exit())
		s.shows(t, "critical")
		require.NotContains(t, s.seen.String(), "\x1b", env)
	}
	require.NotContains(t, millrace(t, "attention", "--http-addr", a.Addr()).out, "\x1b", "a pipe")
}

func TestTopRedrawsTerminal(t *testing.T) {
	a := clitest.NewAPI(t, 200, `{"product_version":"v1","broker":{"connected":true,"product":"RabbitMQ","version":"4"},"vhost":"/","jobs":{"processed":10},
		"total_count":1,"items":[{"name":"mails","identity":"h:1:x","state":"running","ready":3,"severity":"warning","kind":"dead_growth","text":"4 jobs died"}]}`)
	s := onTerminal(t, 100, []string{"NO_COLOR=1"}, "top", "--every", "100ms", "-n", "3", "--http-addr", a.Addr())
	require.Zero(t, s.exit(), s.seen.String())
	s.shows(t, leaveScreen)
	seen := s.seen.String()
	require.Equal(t, 3, strings.Count(seen, toTop), "it is drawn three times in one place")
	for _, want := range []string{enterScreen, "millrace v1, RabbitMQ 4, virtual host /", "warning   dead_growth", "mails", "h:1:x", "processed 0.0/s"} {
		require.Contains(t, seen, want)
	}

	r := millrace(t, "top", "-n", "2", "--every", "100ms", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Equal(t, 2, strings.Count(r.out, "millrace v1"))
	require.NotContains(t, r.out, "\x1b")
	require.Equal(t, ExitUsage, millrace(t, "top", "--every", "1ms", "--http-addr", a.Addr()).code)
	require.Equal(t, ExitFailed, millrace(t, "top", "--http-addr", "127.0.0.1:1").code)
}

func TestTopFitsScreen(t *testing.T) {
	_, program := clitest.OpenTerminal(t, 60, 5)
	tall := &top{out: output.Streams{Out: program}}
	require.NoError(t, tall.show(bytes.Repeat([]byte("line\n"), 50)))
	columns, lines := tall.out.Size()
	require.Equal(t, 5, lines)
	require.Equal(t, 60, columns)
	require.Equal(t, 60, tall.out.Width())
}

func TestClosedTerminalIsNoConsent(t *testing.T) {
	a := clitest.NewAPI(t, 200, oneQueue)
	s := onTerminal(t, 80, nil, "queues", "purge", "mails", "--http-addr", a.Addr())
	s.shows(t, "[y/N]")
	_, err := s.person.Write([]byte{4}) // Ctrl-D
	require.NoError(t, err)
	ended := make(chan int, 1)
	go func() { ended <- s.exit() }()
	select {
	case code := <-ended:
		require.Equal(t, ExitFailed, code)
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
	require.Len(t, a.Asked(), 1)
}
