package wire

import (
	"unicode/utf8"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// TraceOf returns the traceparent of a message if it may be passed on, and "" otherwise.
func TraceOf(headers map[string]any) string { return shared.Traceparent(headers[HeaderTraceparent]) }

// TraceHeaders returns headers that have nothing but a trace.
func TraceHeaders(trace string) map[string]any {
	if trace == "" {
		return nil
	}
	return map[string]any{HeaderTraceparent: trace}
}

// Provenance is what headers say of who published a job. Each message about the job keeps it.
type Provenance struct {
	Trace  string // its traceparent
	Sender string // of a delayed message: the user_id with which it was published
}

// ProvenanceOf returns the provenance in the headers of a message, with the user_id that the broker
// has checked.
func ProvenanceOf(headers map[string]any, userID string, trusted bool) Provenance {
	return Provenance{TraceOf(headers), SenderOf(headers, userID, trusted)}
}

// AddTo adds the provenance to headers.
func (p Provenance) AddTo(headers map[string]any) {
	if p.Trace != "" {
		headers[HeaderTraceparent] = p.Trace
	}
	if p.Sender != "" {
		headers[HeaderUserID] = p.Sender
	}
}

// SenderOf returns the user_id with which a delayed message was published, and "" if that is not
// known. A header says so. It counts in what Millrace published itself, and if the broker has
// checked that the record is of the same user.
func SenderOf(headers map[string]any, userID string, trusted bool) string {
	sender, _ := headers[HeaderUserID].(string)
	if !trusted && sender != userID || len(sender) > shared.MaxShort || !utf8.ValidString(sender) {
		return ""
	}
	return sender
}
