package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/localbroker"
	"github.com/millrace-jobs/millrace/wire"
)

// room is the virtual host of a trial, with a sidecar.
type room struct {
	*test
	broker    *localbroker.Broker
	vhost     string
	amqpURL   string   // for the programs
	env       []string // of the programs
	runnerURL string
	api       string // of the sidecar

	connecting sync.Mutex
	conn       *amqp.Connection // the runner's own
}

// enter creates an empty virtual host.
func (t *trial) enter() {
	name := fmt.Sprintf("conformance-%d", t.vhosts.Add(1))
	t.room = &room{test: t.test, broker: t.broker, vhost: name, amqpURL: t.broker.AMQPURL() + name, runnerURL: t.broker.AMQPURL() + name}
	t.streams = &streams{t.room, map[string]*tail{}}
	t.manage(http.MethodPut, "/api/vhosts/"+name, nil, nil)
	t.manage(http.MethodPut, "/api/permissions/"+name+"/guest", map[string]string{"configure": ".*", "write": ".*", "read": ".*"}, nil)
	t.cleanup(func() { _ = t.tryManage(http.MethodDelete, "/api/vhosts/"+name, nil, nil) })
	t.cleanup(t.hangUp)
}

func (r *room) manage(method, path string, in, out any) {
	require.NoError(r, r.tryManage(method, path, in, out))
}

// tryManage sends a request to the broker's management API.
func (r *room) tryManage(method, path string, in, out any) error {
	var body []byte // LavinMQ does not accept null for no body
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequest(method, strings.TrimSuffix(r.broker.ManagementURL(), "/")+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := httpClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("management API: %s %s: %s", method, path, resp.Status)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

var httpClient = &http.Client{Timeout: 30 * time.Second}

// serve starts the sidecar and waits until it leads.
func (t *trial) serve() (sidecar *program) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := listener.Addr().String()
	require.NoError(t, listener.Close())
	t.room.api = "http://" + addr
	args := []string{
		"serve", "--http-addr", addr, "--amqp-url", t.room.amqpURL, "--management-url", t.broker.ManagementURL(), "--auth", "none", "--log-level", "warn",
	}
	if streams := t.broker.StreamURL(); streams != "" {
		args = append(args, "--stream-url", streams+t.room.vhost)
	}
	cmd := exec.Command(t.sidecar, args...)
	p := t.start("sidecar", cmd)
	t.cleanup(func() { p.stop(t, 20*time.Second) })
	t.eventually(func() bool {
		t.runs(p)
		return t.tryAPI(http.MethodGet, "/api/overview").Get("scheduler.phase").String() == "leading"
	}, "the sidecar leads")
	return p
}

// must sends a request to the sidecar, which must succeed.
func (r *room) must(method, path string) {
	req, err := http.NewRequest(method, r.api+path, nil)
	require.NoError(r, err)
	resp, err := httpClient.Do(req)
	require.NoError(r, err)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	require.Less(r, resp.StatusCode, http.StatusMultipleChoices, "%s %s: %s", method, path, text)
}

func (r *room) tryAPI(method, path string) gjson.Result {
	req, err := http.NewRequest(method, r.api+path, nil)
	require.NoError(r, err)
	resp, err := httpClient.Do(req)
	if err != nil {
		return gjson.Result{}
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return gjson.ParseBytes(body)
}

// understood checks that the sidecar has rejected no record.
func (r *room) understood() {
	require.Empty(r, r.tryAPI(http.MethodGet, "/api/rejected").Array(), "records that the sidecar rejected")
}

// channel runs use with a channel. All channels share a connection that lasts as long as the trial,
// if the broker does.
func (r *room) channel(use func(*amqp.Channel) error) error {
	ch, err := r.openChannel()
	if err != nil {
		return err
	}
	defer ch.Close()
	return use(ch)
}

func (r *room) openChannel() (*amqp.Channel, error) {
	r.connecting.Lock()
	defer r.connecting.Unlock()
	if r.conn == nil || r.conn.IsClosed() {
		conn, err := amqp.Dial(r.runnerURL)
		if err != nil {
			return nil, err
		}
		r.conn = conn
	}
	return r.conn.Channel()
}

func (r *room) hangUp() {
	r.connecting.Lock()
	defer r.connecting.Unlock()
	if r.conn != nil {
		_ = r.conn.CloseDeadline(time.Now().Add(10 * time.Second))
	}
}

// declare declares job queues as a worker would.
func (r *room) declare(queues ...string) {
	require.NoError(r, r.channel(func(ch *amqp.Channel) error {
		for _, q := range queues {
			if _, err := ch.QueueDeclare("queue."+q, true, false, false, false, amqp.Table{"x-max-priority": 10}); err != nil {
				return err
			}
		}
		return nil
	}))
}

// declareQuorum declares a job queue that is a quorum queue.
func (r *room) declareQuorum(queue string) {
	require.NoError(r, r.channel(func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(wire.QueuePrefix+queue, true, false, false, false, amqp.Table{amqp.QueueTypeArg: amqp.QueueTypeQuorum})
		return err
	}))
}

// put publishes messages directly to a queue.
func (r *room) put(queue string, messages ...amqp.Publishing) {
	require.NoError(r, r.channel(func(ch *amqp.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		for _, m := range messages {
			m.DeliveryMode = amqp.Persistent
			c, err := ch.PublishWithDeferredConfirm("", "queue."+queue, true, false, m)
			if err != nil {
				return err
			}
			if !c.Wait() {
				return fmt.Errorf("%s refuses a job", queue)
			}
		}
		return nil
	}))
}

// job returns a message with a job.
func job(class string, priority int, args ...any) amqp.Publishing {
	body, err := json.Marshal(map[string]any{"jid": fmt.Sprintf("raw-%s-%v", class, args[0]), "class": class, "args": args})
	if err != nil {
		panic(err)
	}
	return amqp.Publishing{Body: body, Priority: uint8(priority)}
}

// control publishes a command to workers.
func (r *room) control(c map[string]any) {
	body, err := json.Marshal(c)
	require.NoError(r, err)
	require.NoError(r, r.channel(func(ch *amqp.Channel) error {
		if err := ch.Confirm(false); err != nil {
			return err
		}
		sent, err := ch.PublishWithDeferredConfirm(wire.Control, "", false, false, amqp.Publishing{Body: body})
		if err == nil {
			sent.Wait()
		}
		return err
	}))
}

// queue returns the size of a queue. ok is false if the queue does not exist.
func (r *room) queue(name string) (q amqp.Queue, ok bool) {
	err := r.channel(func(ch *amqp.Channel) (err error) {
		q, err = ch.QueueDeclarePassive("queue."+name, true, false, false, false, nil)
		return err
	})
	return q, err == nil
}

// ready returns how many jobs wait in a queue.
func (r *room) ready(name string) int {
	q, _ := r.queue(name)
	return q.Messages
}

// empty reports whether a queue has no jobs, not even unacknowledged ones. The answer is from the
// management API, and some seconds old.
func (r *room) empty(name string) bool {
	var q struct{ Messages *int }
	err := r.tryManage(http.MethodGet, "/api/queues/"+r.vhost+"/"+wire.QueuePrefix+name, nil, &q)
	return err == nil && q.Messages != nil && *q.Messages == 0
}

func (r *room) consumed(name string) bool {
	q, _ := r.queue(name)
	return q.Consumers > 0
}

// left removes the jobs from a queue, and returns how many of them no worker has had. On a busy
// machine some jobs may have become due again meanwhile. They do not count.
func (r *room) left(queue string) (n int) {
	require.NoError(r, r.channel(func(ch *amqp.Channel) error {
		for {
			d, found, err := ch.Get(wire.QueuePrefix+queue, true)
			if err != nil || !found {
				return err
			}
			if gjson.GetBytes(d.Body, "retry_count").Int() == 0 {
				n++
			}
		}
	}))
	return n
}

// peek takes a job from a queue and returns it.
func (r *room) peek(queue string) {
	require.NoError(r, r.channel(func(ch *amqp.Channel) error {
		d, ok, err := ch.Get("queue."+queue, false)
		if err != nil || !ok {
			return fmt.Errorf("nothing to peek at in %s: %w", queue, err)
		}
		return d.Nack(false, true)
	}))
}
