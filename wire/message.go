package wire

import "time"

// Record is one message read from a stream.
type Record struct {
	Stream  string
	Offset  int64
	Time    time.Time      // when the broker stored it; zero if the transport does not report it
	UserID  string         // checked by the broker; empty if the publisher set none
	Headers map[string]any // application headers; Millrace's own are strings or int64
	Body    []byte

	// How the message was published. Set only for streams behind an exchange: see Routed.
	Exchange string
	Key      string
	Priority uint8

	// Where the publisher awaits an answer. Set only for such streams too.
	ReplyTo       string
	CorrelationID string

	// Fault says why the transport could not read the records from Offset to Through. Body is empty
	// then.
	Fault   string
	Through int64
}

// Message is one message to publish. Package broker adds the properties that all messages have.
type Message struct {
	Exchange      string
	Key           string
	MessageID     string
	Type          string
	Timestamp     time.Time
	Priority      uint8
	ReplyTo       string
	CorrelationID string
	Transient     bool           // the broker may lose it in a restart
	Headers       map[string]any // strings and int64 only: streams drop arrays and tables
	Body          []byte
}

// Delivery is one message taken from a queue.
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
	Headers       map[string]any // may have x-death
	Body          []byte
}
