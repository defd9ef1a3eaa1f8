package answer

import (
	"encoding/json"

	"github.com/millrace-jobs/millrace/wire"
)

// Name returns what to call a job: its class or, of a delayed message, where it goes.
func (e *Entry) Name() string {
	class := e.Millrace.Class
	if class != wire.MessageClass {
		return class
	}
	var messages []struct {
		Exchange *string `json:"exchange"`
		Key      string  `json:"routing_key"`
	}
	if err := json.Unmarshal(e.Job.Args, &messages); err != nil || len(messages) != 1 || messages[0].Exchange == nil {
		return class
	}
	switch exchange, key := *messages[0].Exchange, messages[0].Key; {
	case exchange == "":
		return key
	case key == "":
		return exchange
	default:
		return exchange + " → " + key
	}
}

// MessageExchanges are the delayed messages that wait, counted by the exchange to which they go.
type MessageExchanges struct {
	Items    []MessageExchange `json:"items"`      // those with most messages first
	Unread   int64             `json:"unsearched"` // messages whose exchange is not known
	Complete bool              `json:"complete"`   // false: there are more exchanges
}

// MessageExchange is the delayed messages for one exchange.
type MessageExchange struct {
	Exchange  string   `json:"exchange"`
	Scheduled int64    `json:"scheduled"`
	Retrying  int64    `json:"retrying"`
	Dead      int64    `json:"dead"`
	Next      *float64 `json:"next_at"` // when the next one is due; nil: none waits, or many jobs are due before it
}
