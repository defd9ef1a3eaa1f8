// Command worker is a small worker that makes one mistake on purpose, so that the suite shows that
// it notices. MILLRACE_MISTAKE is the mistake:
//
//   - acks-first acknowledges a job before its retry is confirmed.
//   - re-encodes encodes the job again in place of its bytes.
//   - forgets acknowledges unfinished jobs at its end, in place of handing them back.
//
// Without a mistake the worker is correct, as far as these scenarios go.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

func main() {
	if err := run(os.Getenv("MILLRACE_MISTAKE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type worker struct {
	mistake string
	queue   string
	ch, pub *amqp.Channel
	stop    chan struct{}

	mu      sync.Mutex
	effects *os.File
	running map[uint64]amqp.Delivery

	publishing sync.Mutex
	returned   chan amqp.Return
}

func run(mistake string) error {
	var s struct {
		Queues      []string `json:"queues"`
		Concurrency int      `json:"concurrency"`
		StopTimeout float64  `json:"stop_timeout"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MILLRACE_WORKER")), &s); err != nil {
		return err
	}
	file, err := os.OpenFile(os.Getenv("MILLRACE_EFFECTS"), os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	conn, err := amqp.Dial(os.Getenv("MILLRACE_AMQP_URL"))
	if err != nil {
		return err
	}
	defer conn.Close()
	w := &worker{mistake: mistake, queue: s.Queues[0], effects: file, running: map[uint64]amqp.Delivery{}, stop: make(chan struct{})}
	deliveries, err := w.consume(conn, max(s.Concurrency, 5))
	if err != nil {
		return err
	}
	return w.serve(deliveries, time.Duration(s.StopTimeout*float64(time.Second)))
}

func (w *worker) consume(conn *amqp.Connection, prefetch int) (_ <-chan amqp.Delivery, err error) {
	if w.ch, err = conn.Channel(); err != nil {
		return nil, err
	}
	if w.pub, err = conn.Channel(); err != nil {
		return nil, err
	}
	if err := w.pub.Confirm(false); err != nil {
		return nil, err
	}
	w.returned = w.pub.NotifyReturn(make(chan amqp.Return, 16))
	if err := w.ch.Qos(prefetch, 0, false); err != nil {
		return nil, err
	}
	return w.ch.Consume("queue."+w.queue, "worker", false, false, false, false, nil)
}

// serve runs jobs until SIGTERM, and then hands back the rest.
func (w *worker) serve(deliveries <-chan amqp.Delivery, timeout time.Duration) error {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTSTP, syscall.SIGTERM)
	var jobs sync.WaitGroup
	for {
		select {
		case d, open := <-deliveries:
			if !open {
				deliveries = nil
				continue
			}
			w.mu.Lock()
			w.running[d.DeliveryTag] = d
			w.mu.Unlock()
			jobs.Go(func() { w.work(d) })
		case s := <-signals:
			if err := w.ch.Cancel("worker", false); err != nil {
				return err
			}
			w.say("quiet", "-", "")
			if s == syscall.SIGTERM {
				return w.end(timeout, signals)
			}
		}
	}
}

// end waits for the timeout or a second signal, and hands back unfinished jobs.
func (w *worker) end(timeout time.Duration, again <-chan os.Signal) error {
	close(w.stop)
	select {
	case <-time.After(timeout):
	case <-again:
	}
	w.say("shutdown", "-", "")
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, d := range w.running {
		var err error
		if w.mistake == "forgets" {
			err = d.Ack(false)
		} else {
			err = d.Nack(false, true)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) say(what, text, jid string) {
	fmt.Fprintf(w.effects, "%s\t%s\t%s\t1\t%f\n", what, text, jid, float64(time.Now().UnixMicro())/1e6)
}

type job struct {
	JID   string            `json:"jid"`
	Class string            `json:"class"`
	Args  []json.RawMessage `json:"args"`
}

func (w *worker) work(d amqp.Delivery) {
	var j job
	if _, err := wire.ParseJob(d.Body); err != nil || json.Unmarshal(d.Body, &j) != nil {
		w.done(d, d.Reject(false))
		return
	}
	text := j.text()
	switch j.Class {
	case "Sleep", "Wait":
		w.sleep(j, text)
	default:
		w.say("ran", text, j.JID)
	}
	w.settle(d, j, text)
}

// text returns the job's first argument, if it is a string.
func (j job) text() (text string) {
	if len(j.Args) > 0 {
		_ = json.Unmarshal(j.Args[0], &text)
	}
	return text
}

func (w *worker) sleep(j job, text string) {
	w.say("began", text, j.JID)
	var seconds float64
	_ = json.Unmarshal(j.Args[1], &seconds)
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
		w.say("ran", text, j.JID)
		return
	case <-w.stop:
	}
	if j.Class == "Wait" {
		w.say("stopped", text, j.JID)
	}
	select {} // the job is handed back, or not
}

// settle publishes the record of a failed job, and acknowledges the job.
func (w *worker) settle(d amqp.Delivery, j job, text string) {
	stream := map[string]string{"Fail": "retries", "Kill": "dead_jobs"}[j.Class]
	if stream == "" {
		w.done(d, d.Ack(false))
		return
	}
	if w.mistake == "acks-first" {
		w.done(d, d.Ack(false))
	}
	if !w.record(stream, d, j, text) {
		return
	}
	if w.mistake != "acks-first" {
		w.done(d, d.Ack(false))
	}
}

func (w *worker) done(d amqp.Delivery, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.running, d.DeliveryTag)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// record publishes a retry or a dead job. It returns true when the broker has confirmed the record
// and not returned it.
func (w *worker) record(stream string, d amqp.Delivery, j job, text string) bool {
	body, err := wire.WithQueue(d.Body, w.queue)
	if err != nil {
		return false
	}
	if w.mistake == "re-encodes" {
		var parsed any
		_ = json.Unmarshal(d.Body, &parsed) // it was parsed before, so this does not fail
		body, _ = json.Marshal(parsed)
	}
	now := float64(time.Now().UnixMicro()) / 1e6
	head := fmt.Sprintf(`{"type":"retry","jid":%q,"retry_at":%f,"retry_count":1,"error_class":"Error","error_message":%q`, j.JID, now+60, "failed on purpose: "+text)
	if stream == "dead_jobs" {
		head = fmt.Sprintf(`{"type":"dead_job","jid":%q,"died_at":%f,"retry_count":0,"error_class":"Killed","error_message":%q`, j.JID, now, "killed on purpose: "+text)
	}
	for {
		m := amqp.Publishing{DeliveryMode: amqp.Persistent, Body: fmt.Appendf(nil, `%s,"job":%s}`, head, body)}
		ok, err := w.publish(stream, m)
		if err != nil {
			return false
		}
		if ok {
			return true
		}
		if w.mistake == "acks-first" {
			return false
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// answered is how long the broker may take to answer a publish. It may never answer one to a stream
// that was just created.
const answered = 10 * time.Second

// publish returns true when the broker has confirmed a message in time and not returned it. It
// publishes one message at a time.
func (w *worker) publish(stream string, m amqp.Publishing) (bool, error) {
	w.publishing.Lock()
	defer w.publishing.Unlock()
	confirm, err := w.pub.PublishWithDeferredConfirm("", stream, true, false, m)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), answered)
	defer cancel()
	ok, err := confirm.WaitContext(ctx)
	if err != nil {
		// It may have arrived, or not: it is published again.
		return false, nil
	}
	select {
	case _, open := <-w.returned:
		return false, map[bool]error{false: amqp.ErrClosed}[open]
	default:
		return ok, nil
	}
}
