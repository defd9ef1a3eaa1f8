package httpapi

import (
	"cmp"
	"context"
	"slices"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	maxExchanges    = 500    // in an answer
	maxNextSearched = 10_000 // entries of a set that a call reads to find when messages are due
)

// messagesAPI counts delayed messages.
type messagesAPI struct {
	entries *tracker.Reader
	answers *answerCache
}

// exchanges counts delayed messages by exchange. The view has these counts; only when the next
// message of an exchange is due is searched for.
func (a *messagesAPI) exchanges(in *problem.Request) (any, error) {
	in.Query()
	return a.answers.share(in, func(context.Context) (any, error) { return a.count() })
}

func (a *messagesAPI) count() (any, error) {
	found := exchangeCounts{}
	var unread int64
	for _, stream := range []string{wire.ScheduledJobs, wire.Retries, wire.DeadJobs} {
		total, counts := a.entries.OfClass(stream, wire.MessageClass), a.entries.ByExchange(stream)
		for exchange, n := range counts {
			*found.of(exchange).in(stream) = n
			total -= n
		}
		unread += max(0, total) // it is a moment older than the others
		if stream == wire.DeadJobs {
			continue
		}
		if err := a.findNext(stream, len(counts), found); err != nil {
			return nil, err
		}
	}
	return found.answer(unread), nil
}

// findNext finds when the next message of each exchange is due. It ends when it has seen so many
// exchanges, or enough entries.
func (a *messagesAPI) findNext(stream string, exchanges int, found exchangeCounts) error {
	seen, looked := map[string]bool{}, 0
	var fault error
	err := a.entries.List(stream, tracker.Cursor{}, func(r tracker.Row) bool {
		if looked == maxNextSearched || len(seen) >= exchanges {
			return false
		}
		looked++
		if r.Class != wire.MessageClass {
			return true
		}
		var stored *tracker.Stored
		stored, fault = a.entries.Get(stream, r.Offset)
		if fault != nil || stored == nil { // it has left the set a moment ago
			return fault == nil
		}
		if exchange, known := stored.Exchange(); known && !seen[exchange] {
			seen[exchange] = true
			found.of(exchange).dueAt(wire.Seconds(r.At))
		}
		return true
	})
	return cmp.Or(fault, err)
}

// exchangeCounts are the counts by exchange.
type exchangeCounts map[string]*exchangeCount

type exchangeCount struct{ answer.MessageExchange }

func (c exchangeCounts) of(exchange string) *exchangeCount {
	if c[exchange] == nil {
		c[exchange] = &exchangeCount{answer.MessageExchange{Exchange: exchange}}
	}
	return c[exchange]
}

func (e *exchangeCount) in(stream string) *int64 {
	switch stream {
	case wire.ScheduledJobs:
		return &e.Scheduled
	case wire.Retries:
		return &e.Retrying
	}
	return &e.Dead
}

func (e *exchangeCount) dueAt(at float64) {
	if e.Next == nil || at < *e.Next {
		e.Next = &at
	}
}

// answer lists the exchanges with most messages first.
func (c exchangeCounts) answer(unread int64) answer.MessageExchanges {
	all := make([]answer.MessageExchange, 0, len(c))
	for _, e := range c {
		all = append(all, e.MessageExchange)
	}
	total := func(e answer.MessageExchange) int64 { return e.Scheduled + e.Retrying + e.Dead }
	slices.SortFunc(all, func(a, b answer.MessageExchange) int {
		return cmp.Or(cmp.Compare(total(b), total(a)), cmp.Compare(a.Exchange, b.Exchange))
	})
	return answer.MessageExchanges{Items: all[:min(len(all), maxExchanges)], Unread: unread, Complete: len(all) <= maxExchanges}
}
