package readmetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// Every request of docs/api/examples.md succeeds, one after another, on a sidecar with suitable
// jobs.
func TestTasks(t *testing.T) {
	s := serve(t, "--dead-age", "36500d") // the examples list the jobs of one particular day
	admin := s.vhost.AddUser(t, "admin", brokertest.Permissions{Tags: "administrator"})
	s.publishForTasks(t)
	promised := promisedStatuses(t)
	last := map[string]string{}
	asked := 0
	for line := range strings.Lines(fence.FindStringSubmatch(document(t, "docs/api/examples.md"))[2]) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var route string
		var status int
		brokertest.Eventually(t, func() bool { // lists show a change a moment later
			var body []byte
			route, status, body = s.task(t, admin, s.fillIn(t, line, last))
			remember(line, body, last)
			if status >= http.StatusMultipleChoices {
				t.Logf("%d: %s\n%s", status, line, body)
			}
			return status < http.StatusMultipleChoices
		}, "%s", line)
		require.Contains(t, promised.of(route), strconv.Itoa(status), "the table of routes promises another answer to %s", line)
		asked++
	}
	require.Greater(t, asked, 50)
}

// promised has the statuses that docs/api/routes.md promises, by method and path.
type promised map[string][]string

func promisedStatuses(t *testing.T) promised {
	t.Helper()
	statuses := promised{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /\\S+)` \\| ([\\d, ]+) \\|").FindAllStringSubmatch(document(t, "docs/api/routes.md"), -1) {
		statuses[row[1]] = strings.Split(row[2], ", ")
	}
	require.Greater(t, len(statuses), 50)
	return statuses
}

// of returns the statuses for the route of a request.
func (p promised) of(request string) []string {
	for route, statuses := range p {
		if regexp.MustCompile("^" + parameter.ReplaceAllString(route, "[^/]+") + "$").MatchString(request) {
			return statuses
		}
	}
	return nil
}

// remember keeps ids that later requests use.
func remember(line string, body []byte, last map[string]string) {
	switch {
	case strings.Contains(line, "/lease "):
		last["LEASE"] = gjson.GetBytes(body, "0.id").String()
	case strings.Contains(line, "/api/operations -H"):
		last["OPERATION"] = gjson.GetBytes(body, "id").String()
	case strings.Contains(line, " -N "):
		last["EVENT"] = strings.TrimSpace(strings.TrimPrefix(string(body), "id: "))
	}
}

// task sends the request of a curl command. It also returns its method and path.
func (s *sidecar) task(t *testing.T, user *brokertest.User, line string) (route string, status int, body []byte) {
	t.Helper()
	line = strings.Replace(line, `"name": "guest", "password": "guest"`, fmt.Sprintf(`"name": %q, "password": %q`, user.Name, user.Password), 1)
	r := curlRequest(t, line)
	if strings.Contains(line, " -u ") {
		r.SetBasicAuth(user.Name, user.Password)
	}
	r.URL.Scheme, r.URL.Host, r.Host = "http", s.addr, s.addr
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	if strings.Contains(line, " cookies ") {
		client.Jar = s.cookies
	}
	resp, err := client.Do(r)
	require.NoError(t, err, line)
	defer resp.Body.Close()
	if strings.Contains(line, " -N ") { // it never ends
		for events := bufio.NewReader(resp.Body); err == nil && !bytes.HasPrefix(body, []byte("id: ")); {
			body, err = events.ReadBytes('\n')
		}
	} else {
		body, err = io.ReadAll(resp.Body)
	}
	require.NoError(t, err)
	return r.Method + " " + r.URL.EscapedPath(), resp.StatusCode, body
}

// yesterday is the beginning of that day in the examples.
const yesterday = 1795219200

func (s *sidecar) publishForTasks(t *testing.T) {
	t.Helper()
	publish := func(stream, body string) {
		s.vhost.Publish(t, "", stream, amqp.Publishing{Body: []byte(body)})
	}
	for i := range 4 {
		jid := fmt.Sprint("task-", i)
		job := fmt.Sprintf(`{"jid":%q,"class":"SendEmail","queue":"mails","args":["ann@example.com"]}`, jid)
		publish(wire.ScheduledJobs, fmt.Sprintf(`{"type":"scheduled_job","jid":%q,"scheduled_at":%d,"job":%s}`, jid, 4_000_000_000+i, job))
		publish(wire.Retries, fmt.Sprintf(`{"type":"retry","jid":"r-%s","retry_at":%d,"retry_count":1,"error_class":"Timeout","error_message":"no answer in %d ms","job":%s}`, jid, 4_000_000_000+i, i, job))
	}
	for i := range 100 {
		jid := fmt.Sprint("yesterday-", i)
		publish(wire.DeadJobs, fmt.Sprintf(`{"type":"dead_job","jid":%q,"died_at":%d,"error_class":"Timeout","error_message":"no answer","job":{"jid":%q,"class":"Report","queue":"late","args":[]}}`, jid, yesterday+i, jid))
	}
	publish(wire.Retries, "garbage")
	publish(wire.Retries, "more garbage")
	ch, err := s.vhost.Owner.Dial(t).Channel() // closed with its connection at the end of the test
	require.NoError(t, err)
	listens, err := ch.QueueDeclare("", false, true, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind(listens.Name, "", wire.Control, false, nil))
	now := float64(time.Now().UnixMilli()) / 1000
	publish(wire.Heartbeats, fmt.Sprintf(`{"type":"heartbeat","identity":"host:1:mails","hostname":"host","pid":1,"tag":"mails","queues":["mails"],"concurrency":5,"busy":0,"beat":%f,"version":"1","state":"running"}`, now))
	for _, path := range []string{"/api/scheduled-jobs/task-3", "/api/retries/r-task-3", "/api/dead-jobs/yesterday-99"} {
		brokertest.Eventually(t, func() bool { _, err := s.get(path); return err == nil }, "%s is there", path)
	}
	brokertest.Eventually(t, func() bool {
		body, err := s.get("/api/processes")
		return err == nil && strings.Contains(body, "host:1:mails")
	}, "the process is there")
	brokertest.Eventually(t, func() bool {
		body, err := s.get("/api/rejected")
		return err == nil && strings.Contains(body, "more garbage")
	}, "the records are rejected")
}

var setInPath = regexp.MustCompile(`/api/(scheduled-jobs|retries|dead-jobs)/JID`)

// fillIn replaces the words in capitals by existing ids.
func (s *sidecar) fillIn(t *testing.T, line string, last map[string]string) string {
	t.Helper()
	if set := setInPath.FindStringSubmatch(line); set != nil {
		if !strings.Contains(line, "/undo") {
			last[set[1]] = s.entry(t, set[1], "SendEmail")
		}
		line = strings.ReplaceAll(line, "/JID", "/"+last[set[1]])
	}
	if strings.Contains(line, "/api/jobs/JID") {
		line = strings.ReplaceAll(line, "JID", s.entry(t, "retries", "SendEmail"))
	}
	if strings.Contains(line, "FINGERPRINT") {
		var groups struct {
			Items []struct{ Fingerprint string }
		}
		brokertest.Eventually(t, func() bool {
			body, err := s.get("/api/errors")
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal([]byte(body), &groups))
			return len(groups.Items) > 0
		}, "an error is listed")
		line = strings.ReplaceAll(line, "FINGERPRINT", groups.Items[0].Fingerprint)
	}
	if strings.Contains(line, "STREAM/OFFSET") {
		body, err := s.get("/api/rejected")
		require.NoError(t, err)
		var rejected []struct {
			Stream string
			Offset int64
		}
		require.NoError(t, json.Unmarshal([]byte(body), &rejected))
		line = strings.ReplaceAll(line, "STREAM/OFFSET", fmt.Sprintf("%s/%d", rejected[0].Stream, rejected[0].Offset))
	}
	return strings.NewReplacer("IDENTITY", "host:1:mails", "LEASE", last["LEASE"], "OPERATION", last["OPERATION"], "EVENT", last["EVENT"]).Replace(line)
}

// word matches a word of a command line, quoted or not. "#" begins a comment.
var word = regexp.MustCompile(`'([^']*)'|(\S+)`)

// curlRequest returns the request that a curl command sends.
func curlRequest(t *testing.T, line string) *http.Request {
	t.Helper()
	var words []string
	for _, found := range word.FindAllStringSubmatch(line, -1) {
		if found[2] == "#" {
			break
		}
		words = append(words, found[1]+found[2])
	}
	require.Equal(t, "curl", words[0], line)
	method, url, body, header := http.MethodGet, "", "", http.Header{}
	for i := 1; i < len(words); i++ {
		switch words[i] {
		case "-N":
		case "-u", "-o", "-b", "-c":
			i++
		case "-X":
			i++
			method = words[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(words[i], ": ")
			header.Set(name, value)
		case "-d":
			i++
			if body = words[i]; method == http.MethodGet {
				method = http.MethodPost
			}
		default:
			require.Empty(t, url, line)
			url = words[i]
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+url, strings.NewReader(body))
	require.NoError(t, err, line)
	r.Header = header
	return r
}
