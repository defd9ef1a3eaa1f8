package answer

// JournalEntry is something that was done, as the journal has it.
type JournalEntry struct {
	Record    int64   `json:"record"` // the journal's, by its offset
	At        float64 `json:"at"`
	Op        string  `json:"op"`
	Set       string  `json:"set,omitempty"`
	Stream    string  `json:"stream,omitempty"` // where it is about no set
	Offset    *int64  `json:"offset,omitempty"`
	JID       string  `json:"jid,omitempty"`
	Queue     string  `json:"queue,omitempty"`
	To        string  `json:"to,omitempty"`
	Periodic  string  `json:"periodic,omitempty"`
	Limit     string  `json:"limit,omitempty"`
	Identity  string  `json:"identity,omitempty"`
	Actor     string  `json:"actor,omitempty"`
	Reason    string  `json:"reason,omitempty"`
	Operation string  `json:"operation,omitempty"`
	Action    string  `json:"action,omitempty"`
	State     string  `json:"state,omitempty"`
	Count     int64   `json:"count,omitempty"`
}

// RejectedRecord is a record that could not be taken in.
type RejectedRecord struct {
	Stream    string `json:"stream"` // or the classic queue that held it
	Offset    int64  `json:"offset"` // for a classic queue, of the journal's record about it
	Reason    string `json:"reason"`
	Size      int64  `json:"size"` // in bytes
	Body      string `json:"body"`
	Encoding  string `json:"encoding"`            // of body: utf-8, or base64
	Truncated bool   `json:"truncated,omitempty"` // body is only the beginning
	Redacted  bool   `json:"redacted,omitempty"`  // parts of it, or all of it, are hidden
}
