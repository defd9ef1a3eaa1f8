package scheduler

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/wire"
)

// responder answers commands, over a connection of its own: a reply_to for which the broker closes
// a connection must not end the one that holds the lock.
type responder struct {
	cfg     broker.Config
	log     *slog.Logger
	answers chan addressed
	conn    *broker.Conn
	pub     *broker.Publisher
}

type addressed struct {
	to    wire.Delivery
	reply wire.Reply
}

// maxAnswers is how many answers may wait. Further clients get no answer, and ask again.
const maxAnswers = 1024

func newResponder(cfg broker.Config, log *slog.Logger) *responder {
	cfg.Name += " answers"
	return &responder{cfg: cfg, log: log, answers: make(chan addressed, maxAnswers)}
}

// send has an answer sent, without waiting.
func (r *responder) send(to wire.Delivery, reply wire.Reply) {
	select {
	case r.answers <- addressed{to, reply}:
	default:
		r.log.Warn("scheduler: too many answers wait, one is dropped")
	}
}

// run sends answers until ctx ends.
func (r *responder) run(ctx context.Context) error {
	defer r.hangUp()
	for {
		select {
		case a := <-r.answers:
			r.answer(ctx, a)
		case <-ctx.Done():
			return nil
		}
	}
}

func (r *responder) answer(ctx context.Context, a addressed) {
	body, err := json.Marshal(a.reply)
	if err == nil {
		err = r.connect(ctx)
	}
	if err == nil {
		err = r.pub.Reply(ctx, a.to, body)
	}
	if err != nil {
		r.log.Warn("scheduler: cannot answer a command", "error", err)
		r.hangUp()
	}
}

func (r *responder) connect(ctx context.Context) (err error) {
	if r.pub != nil {
		select {
		case <-r.pub.Done():
			r.hangUp()
		default:
			return nil
		}
	}
	if r.conn, err = broker.Dial(ctx, r.cfg); err != nil {
		return err
	}
	r.pub, err = r.conn.Publisher(ctx)
	return err
}

func (r *responder) hangUp() {
	if r.conn != nil {
		_ = r.conn.Close()
	}
	r.conn, r.pub = nil, nil
}
