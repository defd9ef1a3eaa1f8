package millrace

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	longestReturned = time.Second            // between two tries of a message that the broker returns
	answerTime      = 500 * time.Millisecond // that a try must leave for the broker's answer
)

// errNoTime: the deadline leaves no time for another try.
var errNoTime = errors.New("no time is left")

// tries says when a message that the broker returned is published again. RabbitMQ returns what is meant for a stream that has no leader
// yet, as in the moments after a restart.
type tries struct {
	client *Client
	began  time.Time
	until  time.Time // when the last one may begin; none: for ever
	pause  pauses
}

func (c *Client) tries(ctx context.Context) *tries {
	t := &tries{client: c, began: time.Now()}
	if deadline, has := ctx.Deadline(); has {
		t.until = deadline.Add(-answerTime)
	}
	return t
}

// share leaves time for other parts of a bulk.
func (t *tries) share(parts int) {
	if !t.until.IsZero() {
		t.until = t.began.Add(t.until.Sub(t.began) / time.Duration(parts))
	}
}

// wait returns nil when it is time for the next try, and otherwise why there is none: errNoTime, ErrClosed, or ctx's error.
func (t *tries) wait(ctx context.Context) error {
	pause := t.pause.next(longestReturned)
	if !t.until.IsZero() && time.Now().Add(pause).After(t.until) {
		return errNoTime
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.client.ctx, cancel)()
	err := sleep(ctx, pause)
	if t.client.ctx.Err() != nil {
		return ErrClosed
	}
	return err
}

// over returns the error of a message that was returned to the last, from why there is no other try.
func (t *tries) over(returned, why error) error {
	if errors.Is(why, ErrClosed) {
		return why
	}
	err := fmt.Errorf("%w; tried for %.1f s", returned, time.Since(t.began).Seconds())
	if errors.Is(why, errNoTime) {
		return err
	}
	return fmt.Errorf("%w: %w", err, why)
}
