package wire

import "time"

// Record is one message read from a stream.
type Record struct {
	Stream  string
	Offset  int64
	Time    time.Time      // when the broker stored it; zero where the transport cannot tell
	UserID  string         // vouched for by the broker; empty if the publisher gave none
	Headers map[string]any // application headers; Millrace's own are strings or int64
	Body    []byte

	// How the message was published. Read only of streams that an exchange leads to: see Routed.
	Exchange string
	Key      string
	Priority uint8

	// Fault says why the transport could not read what stands at Offset (and up to Through); Body is empty then.
	Fault   string
	Through int64
}

// Message is one message to publish. Only what is listed here is ever set on what Millrace publishes.
type Message struct {
	Exchange      string
	Key           string
	MessageID     string
	Type          string
	Timestamp     time.Time
	Priority      uint8
	ReplyTo       string
	CorrelationID string
	Transient     bool           // the broker may forget it when it restarts
	Headers       map[string]any // strings and int64 only: streams drop arrays and tables
	Body          []byte
}

// Delivery is one message taken from a classic queue.
type Delivery struct {
	Tag           uint64
	Exchange      string
	Key           string
	MessageID     string
	UserID        string
	ReplyTo       string
	CorrelationID string
	Timestamp     time.Time
	Priority      uint8
	Redelivered   bool           // it may have been delivered before
	Headers       map[string]any // may hold x-death
	Body          []byte
}
