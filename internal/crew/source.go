package crew

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/wire"
)

// Source publishes jobs to jobs.gated, and receives the leader's answers. Several of its producers
// can run at once.
type Source struct {
	URLs  []string                              // of the nodes
	Job   func(n int) (jid string, body []byte) // makes the nth job
	Every time.Duration                         // from one job of a producer to its next

	mu      sync.Mutex
	made    int
	sure    []string
	answers map[string]wire.Reply
}

// Sure returns the jobs that the broker has confirmed.
func (s *Source) Sure() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sure)
}

// Answers returns the leader's answers, by jid.
func (s *Source) Answers() map[string]wire.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.answers)
}

// lastAnswers is how long a producer waits for answers when it has published all of its jobs.
const lastAnswers = 2 * time.Second

// Run publishes so many jobs, one after the other, or fewer if ctx ends. A job that the broker may
// not have taken is not published again.
func (s *Source) Run(ctx context.Context, jobs int) {
	var p *producer
	for range jobs {
		jid, body := s.next()
		err := ctx.Err()
		if p == nil && err == nil {
			p, err = s.connect()
		}
		if err == nil {
			err = p.publish(jid, body)
		}
		if err == nil {
			s.keep(jid)
		} else if p != nil {
			p.close()
			p = nil
		}
		if pause.For(ctx, s.Every) != nil {
			break
		}
	}
	if p != nil {
		time.Sleep(lastAnswers)
		p.close()
	}
}

func (s *Source) next() (jid string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return s.Job(s.made - 1)
}

func (s *Source) keep(jid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sure = append(s.sure, jid)
}

// producer is a connection of a source.
type producer struct {
	conn *amqp.Connection
	ch   *amqp.Channel
}

// directReply is the broker's pseudo-queue for answers.
const directReply = "amq.rabbitmq.reply-to"

// patience is how long a node may take to answer. A frozen one never does.
const patience = 5 * time.Second

// connect connects to any node.
func (s *Source) connect() (*producer, error) {
	url := s.URLs[rand.IntN(len(s.URLs))] //nolint:gosec // no secret
	conn, err := amqp.DialConfig(url, amqp.Config{Heartbeat: patience, Dial: amqp.DefaultDial(patience)})
	if err != nil {
		return nil, err
	}
	p := &producer{conn: conn}
	if p.ch, err = conn.Channel(); err == nil {
		err = p.ch.Confirm(false)
	}
	var answers <-chan amqp.Delivery
	if err == nil {
		answers, err = p.ch.Consume(directReply, "", true, false, false, false, nil)
	}
	if err != nil {
		p.close()
		return nil, err
	}
	go func() {
		for d := range answers {
			s.answered(d)
		}
	}()
	return p, nil
}

func (p *producer) close() { _ = p.conn.CloseDeadline(time.Now().Add(patience)) }

func (s *Source) answered(d amqp.Delivery) {
	var reply wire.Reply
	if json.Unmarshal(d.Body, &reply) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = map[string]wire.Reply{}
	}
	s.answers[d.CorrelationId] = reply
}

func (p *producer) publish(jid string, body []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	confirm, err := p.ch.PublishWithDeferredConfirmWithContext(ctx, "", wire.Gated, true, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, ReplyTo: directReply, CorrelationId: jid, Body: body})
	if err != nil {
		return err
	}
	ack, err := confirm.WaitContext(ctx)
	if err == nil && !ack {
		err = errors.New("the broker refused the job")
	}
	return err
}

// Verdict is what became of unique jobs.
type Verdict struct {
	Lost       []string // jobs that neither ran nor were duplicates
	Wrong      []string // jobs about which a publisher got a wrong answer
	Duplicates int
}

// Judge compares what was published with what ran. duplicateOf returns the job of which a job is a
// duplicate, as the sidecars say, or an empty text.
func (s *Source) Judge(w *Work, duplicateOf func(jid string) (string, error)) (v Verdict, err error) {
	answers := s.Answers()
	for _, jid := range s.Sure() {
		other, err := duplicateOf(jid)
		if err != nil {
			return v, err
		}
		ran := w.ran(jid)
		if other != "" {
			v.Duplicates++
		}
		if !ran && other == "" {
			v.Lost = append(v.Lost, jid)
		}
		if reply, ok := answers[jid]; ok && !ran && (reply.Status == wire.StatusCreated || reply.Status == wire.StatusOK && other != reply.DuplicateOf) {
			v.Wrong = append(v.Wrong, jid)
		}
		if ran && other != "" {
			v.Wrong = append(v.Wrong, jid)
		}
	}
	return v, nil
}
