package answer

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
