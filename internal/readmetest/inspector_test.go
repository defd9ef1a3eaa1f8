package readmetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	client "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

// The clients' inspectors find, cancel, reschedule, retry and delete jobs of a sidecar. All their
// requests and answers follow the contract.
func TestInspectors(t *testing.T) {
	for language, inspect := range map[string]func(*testing.T, *sidecar, string){
		"go": inspectByGo, "python": inspectByPython, "ruby": inspectByRuby, "javascript": inspectByJavaScript, "java": inspectByJava,
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if install := map[string]string{"javascript": "install", "java": "conformance/build"}[language]; install != "" {
				prepare(t, "clients/"+language+"/"+install)
			}
			s := serve(t)
			s.publishForInspectors(t)
			commands := s.runForInspectors(t)
			inspect(t, s, held(t, s))
			brokertest.Eventually(t, func() bool {
				d, ok, err := commands()
				return err == nil && ok && gjson.GetBytes(d.Body, "op").String() == "cancel" && gjson.GetBytes(d.Body, "jid").String() == "runs"
			}, "the worker is asked to cancel its job")
		})
	}
}

const (
	oddJID = "a/b c%2F?ü"
	oddTag = "customer:4 & 2/+ü"
	tagged = 501 // scheduled jobs with the tag: one more than a page of the inspectors has
)

// publishForInspectors publishes a scheduled job, a retry and a dead job for the queue mails, and
// jobs with a tag for another queue.
func (s *sidecar) publishForInspectors(t *testing.T) {
	t.Helper()
	publish := func(stream, format, jid, more string) {
		job := fmt.Sprintf(`{"jid":%q,"class":"SendEmail","args":["ann@example.com"],%s}`, jid, more)
		s.vhost.Publish(t, "", stream, amqp.Publishing{Body: fmt.Appendf(nil, format, jid, job)})
	}
	schedule := func(jid, more string) {
		publish(wire.ScheduledJobs, `{"type":"scheduled_job","jid":%q,"scheduled_at":4000000000,"job":%s}`, jid, more)
	}
	mails, other := `"queue":"mails"`, fmt.Sprintf(`"queue":"tagged","tags":["x",%q]`, oddTag)
	for i := range tagged {
		schedule(fmt.Sprint("tagged", i), other)
	}
	for jid, more := range map[string]string{"failed": mails, "failed-tagged": other} {
		publish(wire.Retries, `{"type":"retry","jid":%q,"retry_at":4000000000,"retry_count":1,"error_class":"Timeout","error_message":"no answer","job":%s}`, jid, more)
	}
	for jid, more := range map[string]string{"dead": mails, "dead-tagged": other} {
		publish(wire.DeadJobs, fmt.Sprintf(`{"type":"dead_job","jid":%%q,"died_at":%d,"error_class":"Timeout","error_message":"no answer","job":%%s}`, time.Now().Unix()), jid, more)
	}
	for _, jid := range []string{"later", oddJID, "first"} {
		schedule(jid, mails)
	}
	for _, path := range []string{
		"/api/scheduled-jobs/later", "/api/scheduled-jobs/" + url.PathEscape(oddJID),
		"/api/retries/failed", "/api/retries/failed-tagged", "/api/dead-jobs/dead", "/api/dead-jobs/dead-tagged",
	} {
		brokertest.Eventually(t, func() bool { _, err := s.get(path); return err == nil }, "%s is there", path)
	}
	brokertest.Eventually(t, func() bool {
		_, err := s.request(http.MethodDelete, "/api/jobs/first")
		return err == nil
	}, "the leader takes commands")
}

// runForInspectors simulates a worker that runs the job "runs". It returns a function that gets the
// commands to that worker.
func (s *sidecar) runForInspectors(t *testing.T) func() (amqp.Delivery, bool, error) {
	t.Helper()
	ch, err := s.vhost.Owner.Dial(t).Channel() // closed with its connection at the end of the test
	require.NoError(t, err)
	commands, err := ch.QueueDeclare("", false, true, true, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind(commands.Name, "", wire.Control, false, nil))
	now := wire.Seconds(time.Now())
	s.vhost.Publish(t, "", wire.Heartbeats, amqp.Publishing{Body: fmt.Appendf(nil, `{"type":"heartbeat","identity":"host:1:mails","hostname":"host","pid":1,`+
		`"tag":"mails","queues":["mails"],"concurrency":5,"busy":1,"beat":%f,"version":"1","state":"running",`+
		`"work":[{"jid":"runs","class":"SendEmail","queue":"mails","started_at":%f}]}`, now, now)})
	brokertest.Eventually(t, func() bool {
		body, err := s.get("/api/processes")
		return err == nil && strings.Contains(body, "host:1:mails")
	}, "the worker is there")
	return func() (amqp.Delivery, bool, error) { return ch.Get(commands.Name, true) }
}

func inspectByGo(t *testing.T, s *sidecar, address string) {
	ctx := t.Context()
	i, err := client.NewInspector(client.InspectorConfig{URL: address})
	require.NoError(t, err)
	later, err := i.Find(ctx, "later")
	require.NoError(t, err)
	require.Len(t, later.Entries, 1)
	e := later.Entries[0]
	require.Equal(t, []any{"later", "scheduled-jobs", int64(4_000_000_000), "SendEmail", "mails", 0}, []any{e.JID, e.Set, e.At.Unix(), e.Class, e.Queue, e.Attempt})
	require.Contains(t, string(e.Record), "ann@example.com")
	sets, jids := map[string]int{}, map[string]bool{}
	for e, err := range i.FindByTag(ctx, oddTag) {
		require.NoError(t, err)
		require.Contains(t, string(e.Record), "ann@example.com")
		sets[e.Set]++
		jids[e.JID] = true
	}
	require.Equal(t, map[string]int{"scheduled-jobs": tagged, "retries": 1, "dead-jobs": 1}, sets)
	require.Len(t, jids, tagged+2)
	require.True(t, jids["failed-tagged"])
	for e, err := range i.FindByTag(ctx, "x") {
		require.NoError(t, err)
		require.Equal(t, "tagged", e.Queue)
		break
	}
	for e, err := range i.FindByTag(ctx, "no such tag") {
		t.Errorf("no job has that tag: %s, %v", e.JID, err)
	}
	due := func(jid string) int64 {
		found, err := i.Find(ctx, jid)
		if err != nil || len(found.Entries) == 0 {
			return 0
		}
		return found.Entries[0].At.Unix()
	}
	for _, jid := range []string{"later", "failed"} {
		require.NoError(t, i.Reschedule(ctx, jid, time.Unix(4_100_000_000, 0)))
		brokertest.Eventually(t, func() bool { return due(jid) == 4_100_000_000 }, "%s is rescheduled", jid)
	}
	require.ErrorIs(t, i.Reschedule(ctx, "dead", time.Now()), client.ErrNotFound)

	for _, jid := range []string{"failed", "dead"} {
		require.NoError(t, i.Retry(ctx, jid))
	}
	brokertest.Eventually(t, func() bool {
		q, err := i.Queue(ctx, "mails")
		return err == nil && q.Ready == 2 && q.Scheduled == 2 && q.Retries == 0 && q.Dead == 0
	}, "both are in their queue")
	all, err := i.Queues(ctx)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "mails", all[0].Name)
	require.ErrorIs(t, i.Retry(ctx, "later"), client.ErrNotFound)

	for _, jid := range []string{"later", oddJID} {
		require.NoError(t, i.Delete(ctx, jid))
		brokertest.Eventually(t, func() bool { return due(jid) == 0 }, "%s is deleted", jid)
		require.ErrorIs(t, i.Delete(ctx, jid), client.ErrNotFound)
	}
	require.NoError(t, i.Cancel(ctx, "runs"))
	require.ErrorIs(t, i.Cancel(ctx, "failed"), client.ErrNotFound)
	_, err = i.Find(ctx, "unknown's")
	require.ErrorIs(t, err, client.ErrNotFound)
	_, err = i.Queue(ctx, "no/such queue")
	require.ErrorIs(t, err, client.ErrNotFound)

	stranger, err := client.NewInspector(client.InspectorConfig{URL: strings.Replace(address, s.vhost.Owner.Password, "wrong", 1)})
	require.NoError(t, err)
	var refused *client.APIError
	require.ErrorAs(t, stranger.Delete(ctx, "later"), &refused)
	require.Equal(t, http.StatusUnauthorized, refused.Status)
	require.Equal(t, "not_authorised", refused.Code)
	for _, err := range stranger.FindByTag(ctx, oddTag) {
		require.ErrorAs(t, err, &refused)
	}
	nowhere, err := client.NewInspector(client.InspectorConfig{URL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	require.ErrorIs(t, nowhere.Delete(ctx, "later"), client.ErrUnreachable)
	_, err = client.NewInspector(client.InspectorConfig{URL: "127.0.0.1:15680"})
	require.ErrorContains(t, err, "http://user:password@host:port")
}

func inspectByPython(t *testing.T, s *sidecar, address string) {
	folder := filepath.Join(root, "clients", "python")
	python := filepath.Join(root, ".cache", "python", "bin", "python") // has pika
	cmd := s.command(t, python, filepath.Join(folder, "tests", "programs", "inspects.py"), address, s.vhost.Owner.Password, oddJID, oddTag)
	cmd.Env = append(cmd.Env, "PYTHONPATH="+filepath.Join(folder, "src"))
	inspects(t, cmd)
}

func inspectByRuby(t *testing.T, s *sidecar, address string) {
	folder := filepath.Join(root, "clients", "ruby")
	program := filepath.Join(folder, "test", "programs", "inspects.rb")
	inspects(t, s.command(t, "ruby", "-w", "-I", filepath.Join(folder, "lib"), program, address, s.vhost.Owner.Password, oddJID, oddTag))
}

func inspectByJavaScript(t *testing.T, s *sidecar, address string) {
	folder := filepath.Join(root, "clients", "javascript")
	inspects(t, s.command(t, "node", filepath.Join(folder, "test", "programs", "inspects.mjs"), address, s.vhost.Owner.Password, oddJID, oddTag))
}

func inspectByJava(t *testing.T, s *sidecar, address string) {
	folder := filepath.Join(root, "clients", "java")
	inspects(t, s.command(t, filepath.Join(folder, "conformance", "inspector"), address, s.vhost.Owner.Password, oddJID, oddTag))
}

// inspects runs a program with the same checks as inspectByGo.
func inspects(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "inspected")
}

// held forwards requests to a sidecar, and fails the test if a request or an answer does not follow
// the contract. The URL has the name and password of the virtual host's owner.
func held(t *testing.T, s *sidecar) string {
	t.Helper()
	doc := contract(t)
	var mu sync.Mutex
	var faults []error
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: s.addr})
			r.Out.Header.Del("Accept-Encoding") // the proxy itself then unpacks compressed answers
		},
		ModifyResponse: func(answer *http.Response) error {
			body, err := io.ReadAll(answer.Body)
			answer.Body = io.NopCloser(bytes.NewReader(body))
			if err == nil {
				err = compare(doc, answer, body)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				faults = append(faults, err)
			}
			return nil
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), sentKey{}, body)))
	}))
	t.Cleanup(func() {
		server.Close()
		require.Empty(t, faults)
	})
	return strings.Replace(server.URL, "://", "://"+url.UserPassword(s.vhost.Owner.Name, s.vhost.Owner.Password).String()+"@", 1)
}

// sentKey is the key of a request's body in its context.
type sentKey struct{}

// compare compares a request and its answer with the contract.
func compare(doc *openapi3.T, answer *http.Response, body []byte) error {
	r := answer.Request
	path, parameters := pathOf(doc, r.URL.EscapedPath())
	if path == "" || doc.Paths.Value(path).GetOperation(r.Method) == nil {
		return fmt.Errorf("%s %s is not in the contract", r.Method, r.URL)
	}
	input := &openapi3filter.RequestValidationInput{
		Request: r.Clone(context.Background()), PathParams: parameters, QueryParams: r.URL.Query(),
		Route:   &routers.Route{Spec: doc, Path: path, PathItem: doc.Paths.Value(path), Method: r.Method, Operation: doc.Paths.Value(path).GetOperation(r.Method)},
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	sent, _ := r.Context().Value(sentKey{}).([]byte)
	input.Request.Body = io.NopCloser(bytes.NewReader(sent))
	if err := openapi3filter.ValidateRequest(context.Background(), input); err != nil {
		return fmt.Errorf("%s %s: the request: %w", r.Method, r.URL, err)
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.StatusCode, Header: answer.Header, Options: input.Options, Body: io.NopCloser(bytes.NewReader(body)),
	}
	if err := openapi3filter.ValidateResponse(context.Background(), output); err != nil {
		return fmt.Errorf("%s %s: the answer: %w", r.Method, r.URL, err)
	}
	return nil
}

var inBraces = regexp.MustCompile(`\\\{(\w+)\\\}`)

// pathOf returns the path of the contract for the path of a request, and its parameters.
func pathOf(doc *openapi3.T, escaped string) (path string, parameters map[string]string) {
	for template := range doc.Paths.Map() {
		form := regexp.MustCompile("^" + inBraces.ReplaceAllString(regexp.QuoteMeta(template), "(?P<$1>[^/]+)") + "$")
		found := form.FindStringSubmatch(escaped)
		if found == nil {
			continue
		}
		parameters = map[string]string{}
		for i, name := range form.SubexpNames()[1:] {
			parameters[name] = must(url.PathUnescape(found[i+1]))
		}
		return template, parameters
	}
	return "", nil
}
