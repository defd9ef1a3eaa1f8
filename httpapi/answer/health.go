package answer

import "time"

// Health is the result of a probe or of a health check.
type Health struct {
	Status   string     `json:"status"` // ok or failed
	Reason   string     `json:"reason,omitempty"`
	Degraded []Degraded `json:"degraded,omitempty"`
}

// Degraded is what every user may know of a Degradation: the broker's words can name users.
type Degraded struct {
	Subject string    `json:"subject"`
	Costs   string    `json:"costs"`
	Node    string    `json:"node,omitempty"`
	Since   time.Time `json:"since"`
}

// Attention is what needs attention, the most severe first.
type Attention struct {
	Now   float64   `json:"now"`
	Items []Problem `json:"items"`
}

// Problem is something that needs attention.
type Problem struct {
	Kind     string  `json:"kind"`
	Severity string  `json:"severity"`          // critical or warning
	Subject  string  `json:"subject,omitempty"` // a queue, process, tag, job's id or the broker's words
	Text     string  `json:"text"`
	Value    float64 `json:"value"` // what the kind is about: messages, seconds, jobs a second
}

// Whoami is the user that asks.
type Whoami struct {
	Name          string `json:"name"`
	Role          string `json:"role"`
	Auth          string `json:"auth"`    // broker, token, header or none
	Via           string `json:"via"`     // basic, bearer, session, header or none
	VHost         string `json:"vhost"`   // of the sidecar
	MayAct        bool   `json:"may_act"` // take the routes that change something
	MayAdminister bool   `json:"may_administer"`
	ReadOnly      bool   `json:"read_only"`    // the sidecar is, for all users
	HidesArgs     bool   `json:"hides_args"`   // some arguments are not shown to this role
	SessionEnds   *int64 `json:"session_ends"` // null without a session
	Environment   string `json:"environment,omitempty"`
}
