package millrace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// command is a message on jobs.control.
type command struct {
	Op       string `json:"op"`
	Identity string `json:"identity"`
	Queue    string `json:"queue"`
	JID      string `json:"jid"`
}

// listen declares the exclusive queue of this process, and obeys the commands that arrive.
func (s *session) listen() error {
	ch, err := s.conn.Channel()
	if err != nil {
		return fmt.Errorf("millrace: open a channel: %w", err)
	}
	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	if err != nil {
		return fmt.Errorf("millrace: declare a queue for commands: %w", err)
	}
	s.control = q.Name
	messages, err := ch.Consume(q.Name, "", true, true, false, false, nil)
	if err != nil {
		return fmt.Errorf("millrace: consume commands: %w", err)
	}
	s.start(func() {
		for d := range messages {
			s.w.obey(d.Body)
		}
	})
	s.bind(q.Name)
	return nil
}

// bind binds the queue on its own channel, because the broker closes it if there is no
// jobs.control.
func (s *session) bind(queue string) {
	ch, err := s.conn.Channel()
	if err != nil {
		return
	}
	defer ch.Close()
	if err := ch.QueueBind(queue, "", wire.Control, false, nil); err != nil {
		s.w.cfg.Logger.Warn("millrace: commands do not reach this worker", "error", err)
	}
}

func (w *Worker) obey(body []byte) {
	var c command
	if json.Unmarshal(body, &c) != nil || c.Identity != "*" && c.Identity != w.identity {
		return
	}
	w.cfg.Logger.Info("millrace: command", "op", c.Op, "queue", c.Queue, "jid", c.JID)
	switch c.Op {
	case wire.ControlQuiet:
		w.Quiet()
	case wire.ControlStop:
		w.Stop()
	case wire.ControlCancel:
		w.running.cancel(c.JID)
	case wire.ControlPause, wire.ControlResume:
		w.pause(c.Queue, c.Op == wire.ControlPause)
	}
}

func (w *Worker) pause(queue string, paused bool) {
	if queue == "" {
		return
	}
	w.setPaused(queue, paused)
	w.changed()
}

// pausedQueues are the queues from which a worker takes no jobs.
type pausedQueues struct {
	mu     sync.Mutex
	paused map[string]bool
}

func (p *pausedQueues) setPaused(queue string, paused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if paused {
		p.paused[queue] = true
	} else {
		delete(p.paused, queue)
	}
}

func (p *pausedQueues) isPaused(queue string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused[queue]
}

// setAllPaused makes these queues the paused ones, and no others.
func (p *pausedQueues) setAllPaused(queues []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = map[string]bool{}
	for _, q := range queues {
		p.paused[q] = true
	}
}

const askTimeout = 2 * time.Second

// askPaused asks the leader which queues are paused. Without an answer, the worker keeps what it
// knew.
func (w *Worker) askPaused(ctx context.Context, s *session) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if body, ok := s.ask(ctx, map[string]string{"id": newJID(), "command": wire.CommandState}); ok {
		s.learnState(body)
	}
}

// leader is what a session knows of the leader, and where it asks.
type leader struct {
	mu     sync.Mutex
	pub    *publisher // not that of the records: the broker closes it if the user may not read answers
	warned sync.Once  // that answers are refused
	// Jobs of earlier epochs than this must be claimed; -1 if the leader has not said it.
	claimBelow atomic.Int64
}

// asking returns the channel on which the leader is asked. It opens another one if that is closed.
func (l *leader) asking(conn *amqp.Connection) (pub *publisher, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pub == nil || l.pub.ch.IsClosed() {
		l.pub, err = newPublisher(conn)
	}
	return l.pub, err
}

// ask sends a command to the leader, and returns its answer. ok is false if there is none before
// ctx ends.
func (s *session) ask(ctx context.Context, command map[string]string) (body []byte, ok bool) {
	pub, err := s.leader.asking(s.conn)
	if err != nil {
		return nil, false
	}
	body, _ = json.Marshal(command)
	a, err := pub.send(ctx, message{key: wire.LeaderInbox, asks: true, Publishing: amqp.Publishing{ContentType: "application/json", Body: body}})
	if errors.Is(err, ErrRefused) {
		s.leader.warned.Do(func() {
			s.w.cfg.Logger.Error("millrace: the user may not read answers, so limited jobs that must be claimed wait", "error", err)
		})
	}
	if err != nil || a.wait(ctx) != nil {
		return nil, false
	}
	body, err = a.answered(ctx)
	return body, err == nil
}

func (s *session) learnState(body []byte) {
	var reply struct {
		Status     int      `json:"status"`
		Paused     []string `json:"paused"`
		ClaimBelow int64    `json:"claim_below"`
	}
	if json.Unmarshal(body, &reply) == nil && reply.Status == 200 {
		s.w.setAllPaused(reply.Paused)
		s.leader.claimBelow.Store(reply.ClaimBelow)
	}
}
