package millrace

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// session is a worker on one connection.
type session struct {
	w         *Worker
	conn      *amqp.Connection
	pub       *publisher    // for records and everything else that must arrive
	ends      chan *end     // limited jobs that have ended
	metricsCh *amqp.Channel // for metrics, which are not confirmed
	control   string        // the exclusive queue for commands; vanishes with the connection
	ledger    *ledger
	lost      chan struct{}   // closed when the connection, pub or metricsCh is gone
	why       error           // valid after lost is closed
	ctx       context.Context // ends when the session does
	cancel    context.CancelFunc
	tags      atomic.Int64
	closing   atomic.Bool
	leader    leader
	parts     sync.WaitGroup
}

// open connects and prepares everything except the lanes.
func (w *Worker) open(ctx context.Context) (*session, error) {
	conn, err := w.hosts.dial(ctx, "millrace worker "+w.identity)
	if err != nil {
		return nil, err
	}
	s := &session{w: w, conn: conn, lost: make(chan struct{}), ends: make(chan *end, wire.MaxEnds)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.leader.claimBelow.Store(-1)
	if err := s.prepare(ctx); err != nil {
		s.cancel()
		conn.Close()
		s.parts.Wait()
		return nil, err
	}
	return s, nil
}

func (s *session) prepare(ctx context.Context) (err error) {
	if s.pub, err = newPublisher(s.conn); err != nil {
		return err
	}
	if s.metricsCh, err = s.conn.Channel(); err != nil {
		return fmt.Errorf("millrace: open a channel: %w", err)
	}
	s.watch()
	if err := s.listen(); err != nil {
		return err
	}
	s.ledger = newLedger(s)
	s.ledger.open(ctx)
	s.w.askPaused(ctx, s)
	return nil
}

// watch waits until the connection, or a channel that the whole session needs, is gone.
func (s *session) watch() {
	closed := make(chan *amqp.Error, 3)
	one := func(c chan *amqp.Error) {
		e := <-c
		closed <- e
	}
	for _, c := range []chan *amqp.Error{
		s.conn.NotifyClose(make(chan *amqp.Error, 1)), s.pub.ch.NotifyClose(make(chan *amqp.Error, 1)), s.metricsCh.NotifyClose(make(chan *amqp.Error, 1)),
	} {
		go one(c)
	}
	go func() {
		s.why = errLost
		if e := <-closed; e != nil {
			s.why = e
		}
		close(s.lost)
		s.cancel()
	}()
}

func (s *session) isLost() bool {
	select {
	case <-s.lost:
		return true
	default:
		return false
	}
}

// ending reports whether channels must not be closed one by one, because acknowledgements are still
// to come or everything is gone.
func (s *session) ending() bool { return s.closing.Load() || s.isLost() }

// start runs a part of the session. The session waits for its parts when it ends.
func (s *session) start(part func()) {
	s.parts.Add(1)
	go func() {
		defer s.parts.Done()
		part()
	}()
}

func (s *session) nextTag() int64 { return s.tags.Add(1) }

// run serves the lanes until the worker has stopped. It returns an error if the connection is lost.
func (s *session) run(ctx context.Context) error {
	for _, l := range s.w.lanes {
		s.start(func() { l.serve(s) })
	}
	s.start(s.beats)
	s.start(s.reportEnds)
	s.start(s.ledger.catchUp)
	s.w.metrics.attach(s)
	defer func() {
		s.w.metrics.detach(s)
		s.close()
	}()
	select {
	case <-s.lost:
		return s.why
	case <-ctx.Done():
	}
	s.w.wait()
	s.closing.Store(true)
	s.w.running.handBack()
	s.finish()
	s.awaitAcks()
	return nil
}

// finish calls the shutdown hooks and sends the last records, as far as the broker accepts them.
func (s *session) finish() {
	for _, hooks := range s.w.hooks {
		s.w.call("shutdown", hooks.Shutdown)
	}
	s.ledger.close()
	s.w.metrics.flush()
	s.heartbeat()
}

func (s *session) close() {
	s.closing.Store(true)
	s.cancel()
	_ = s.conn.CloseDeadline(time.Now().Add(settleTime)) // the broker may not answer
	s.parts.Wait()
}

// publishSoon publishes a record that may be lost, within a short time.
func (s *session) publishSoon(stream string, body []byte) error {
	ctx, cancel := context.WithTimeout(s.ctx, settleTime)
	defer cancel()
	return s.pub.publish(ctx, record(stream, body))
}

func record(stream string, body []byte) message {
	return message{key: stream, Publishing: amqp.Publishing{
		ContentType: "application/json", DeliveryMode: amqp.Persistent, Timestamp: time.Now(), Body: body,
	}}
}
