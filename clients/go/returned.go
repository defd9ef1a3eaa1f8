package millrace

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	longestReturned = time.Second            // between two attempts for a returned message
	answerTime      = 500 * time.Millisecond // left for the broker to answer an attempt
)

// errNoTime is returned when the deadline leaves no time for another attempt.
var errNoTime = errors.New("no time is left")

// tries says when a returned message is published again. RabbitMQ returns a message for a stream
// that has no leader yet, as in the moments after a restart.
type tries struct {
	client *Client
	began  time.Time
	until  time.Time // when the last attempt may begin; zero means no limit
	pause  pauses
}

func (c *Client) tries(ctx context.Context) *tries {
	t := &tries{client: c, began: time.Now()}
	if deadline, has := ctx.Deadline(); has {
		t.until = deadline.Add(-answerTime)
	}
	return t
}

// share leaves time for the other parts of a bulk.
func (t *tries) share(parts int) {
	if !t.until.IsZero() {
		t.until = t.began.Add(t.until.Sub(t.began) / time.Duration(parts))
	}
}

// wait returns nil when it is time for the next attempt. Otherwise it returns why there is none:
// errNoTime, ErrClosed, or ctx's error.
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

// over returns the error of a message whose last attempt was returned. why says why there is no
// other attempt.
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
