package wire

import (
	"encoding/json"
	"fmt"
	"time"
)

// Controls is what worker processes are told.
type Controls struct {
	ID       string  `json:"id"`
	Op       string  `json:"op"`
	Identity string  `json:"identity"` // of the process that is meant; "*": all
	Queue    string  `json:"queue,omitempty"`
	JID      string  `json:"jid,omitempty"` // cancel: of the job
	At       float64 `json:"at"`
	Actor    string  `json:"actor,omitempty"`
	Reason   string  `json:"reason,omitempty"`
}

// Message is what is published: to every process that listens.
func (c Controls) Message(now time.Time) Message {
	body, err := json.Marshal(c)
	if err != nil { // strings and a number only
		panic(fmt.Sprintf("wire: control: %v", err))
	}
	return Message{Exchange: Control, MessageID: c.ID, Type: "control", Timestamp: now, Body: body}
}
