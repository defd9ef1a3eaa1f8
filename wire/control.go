package wire

import (
	"encoding/json"
	"fmt"
	"time"
)

// Controls is a request to worker processes.
type Controls struct {
	ID       string  `json:"id"`
	Op       string  `json:"op"`
	Identity string  `json:"identity"` // of the process; "*" means all
	Queue    string  `json:"queue,omitempty"`
	JID      string  `json:"jid,omitempty"` // cancel: of the job
	At       float64 `json:"at"`
	Actor    string  `json:"actor,omitempty"`
	Reason   string  `json:"reason,omitempty"`
}

// Message returns the message that sends the request to all worker processes.
func (c Controls) Message(now time.Time) Message {
	body, err := json.Marshal(c)
	if err != nil { // strings and one number are always valid
		panic(fmt.Sprintf("wire: control: %v", err))
	}
	return Message{Exchange: Control, MessageID: c.ID, Type: "control", Timestamp: now, Body: body}
}
