package answer

import "github.com/millrace-jobs/millrace/wire"

// Refusal is the answer to a request that is not carried out, or that may not be.
type Refusal struct {
	Code      string         `json:"error"`  // for programs
	Reason    string         `json:"reason"` // for people
	RequestID string         `json:"request_id"`
	Happened  *wire.Happened `json:"happened,omitempty"` // 404: the entry's last outcome
	Offsets   []int64        `json:"offsets,omitempty"`  // 409: of all entries with the jid
}
