package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/internal/cli/humantime"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

type messagesCmd struct {
	apiFlags
}

var exchangeRows = rows[answer.MessageExchange]{
	[]output.Column{output.Name("EXCHANGE"), output.Plain("SCHEDULED"), output.Plain("RETRYING"), output.Plain("DEAD"), output.Due("NEXT DUE")},
	func(e *answer.MessageExchange) []any {
		var next any
		if e.Next != nil {
			next = humantime.Unix(*e.Next)
		}
		return []any{cmp.Or(e.Exchange, "(default)"), e.Scheduled, e.Retrying, e.Dead, next}
	},
}

// endOfExchanges says how many messages there are, and what is left out.
func endOfExchanges(m *answer.MessageExchanges) string {
	var messages int64
	for _, e := range m.Items {
		messages += e.Scheduled + e.Retrying + e.Dead
	}
	text := "none"
	if messages > 0 {
		text = fmt.Sprintf("%s for %s", wire.Counted(messages, "message"), wire.Counted(int64(len(m.Items)), "exchange"))
	}
	if m.Unread > 0 {
		text += fmt.Sprintf("; %s not counted: the records are large, or name no exchange", wire.Counted(m.Unread, "message"))
	}
	if !m.Complete {
		text += "; there are more exchanges, which have fewer messages"
	}
	return text
}

// Run counts delayed messages by exchange.
func (c *messagesCmd) Run(ctx context.Context, out output.Streams) error {
	return get(ctx, out, &c.apiFlags, "/api/messages/exchanges", nil, func(p *output.Printer, m *answer.MessageExchanges) error {
		return p.List(exchangeRows.table(m.Items), endOfExchanges(m))
	})
}
