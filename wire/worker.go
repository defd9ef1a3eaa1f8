package wire

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// Limits of a heartbeat. The rest is cut off, because it is only shown.
const (
	maxIdentity = 1024
	maxShown    = 256 // bytes of a text
	maxList     = 100 // queues, weights, labels, lanes
	maxWork     = 1000
)

var workerStates = shared.Set(StateRunning, StateQuiet, StateStopping)

var heartbeatMembers = shared.Set("type", "identity", "hostname", "pid", "tag", "concurrency", "busy", "beat", "rss_kb", "queues", "version",
	"started_at", "state", "labels", "rtt_us", "weights", "lanes", "work")

// Heartbeat is a worker process's report about itself.
type Heartbeat struct {
	Identity    string            `json:"identity"`
	Hostname    string            `json:"hostname"`
	PID         int64             `json:"pid"`
	Tag         string            `json:"tag"`
	Version     string            `json:"version"`
	State       string            `json:"state"`
	Concurrency int64             `json:"concurrency"`
	Busy        int64             `json:"busy"`
	RSSKB       int64             `json:"rss_kb"`
	RTTMicros   int64             `json:"rtt_us"`
	Beat        time.Time         `json:"beat"`
	StartedAt   time.Time         `json:"started_at"` // zero if not reported
	Queues      []string          `json:"queues"`
	Weights     map[string]int64  `json:"weights,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Lanes       []Lane            `json:"lanes,omitempty"`
	Work        []Work            `json:"work,omitempty"`
	Cut         bool              `json:"cut,omitempty"` // some of it was cut off
}

// Lane is a part of a process with its own queues and slots.
type Lane struct {
	Name        string   `json:"name"`
	Queues      []string `json:"queues"`
	Concurrency int64    `json:"concurrency"`
	Busy        int64    `json:"busy"`
}

// Work is a job that a process runs now.
type Work struct {
	JID       string    `json:"jid"`
	Class     string    `json:"class"`
	Queue     string    `json:"queue"`
	StartedAt time.Time `json:"started_at"` // zero if not reported
}

// CheckHeartbeat returns why a record of heartbeats is refused, or nil.
func CheckHeartbeat(body []byte) error {
	_, err := ParseHeartbeat(body)
	return err
}

// ParseHeartbeat parses a record of heartbeats. It refuses a record without identity or time. It
// leaves out other values that are not valid: a worker that is partly understood is better than one
// that is not shown.
func ParseHeartbeat(body []byte) (h Heartbeat, err error) {
	if err := shared.CheckRecord(body); err != nil {
		return h, err
	}
	o, err := shared.ParseObject(string(body), heartbeatMembers)
	if err != nil {
		return h, err
	}
	if o.Has("type") && o.At("type").String() != "heartbeat" {
		return h, fmt.Errorf("member \"type\" is not \"heartbeat\"")
	}
	if h.Identity, err = o.Text("identity"); err != nil {
		return h, err
	}
	switch {
	case h.Identity == "":
		return h, fmt.Errorf("member \"identity\" is missing")
	case len(h.Identity) > maxIdentity:
		return h, fmt.Errorf("member \"identity\" has %d bytes, at most %d are allowed", len(h.Identity), maxIdentity)
	case !o.Has("beat"):
		return h, fmt.Errorf("member \"beat\" is missing")
	}
	if h.Beat, err = o.Time("beat"); err != nil {
		return h, err
	}
	h.readRest(o)
	return h, nil
}

func (h *Heartbeat) readRest(o shared.Object) {
	h.Hostname, h.Tag, h.Version = shown(o.At("hostname"), &h.Cut), shown(o.At("tag"), &h.Cut), shown(o.At("version"), &h.Cut)
	h.PID, h.Concurrency, h.Busy = whole(o.At("pid")), whole(o.At("concurrency")), whole(o.At("busy"))
	h.RSSKB, h.RTTMicros = whole(o.At("rss_kb")), whole(o.At("rtt_us"))
	h.StartedAt = anyTime(o.At("started_at"))
	if h.State = o.At("state").String(); !workerStates[h.State] {
		h.State = StateRunning
	}
	h.Queues = names(o.At("queues"), &h.Cut)
	each(o.At("weights"), maxList, &h.Cut, func(name, weight gjson.Result) {
		if h.Weights == nil {
			h.Weights = map[string]int64{}
		}
		h.Weights[shown(name, &h.Cut)] = whole(weight)
	})
	each(o.At("labels"), maxList, &h.Cut, func(name, value gjson.Result) {
		if h.Labels == nil {
			h.Labels = map[string]string{}
		}
		h.Labels[shown(name, &h.Cut)] = shown(value, &h.Cut)
	})
	each(o.At("lanes"), maxList, &h.Cut, func(_, lane gjson.Result) {
		m := membersOf(lane, "name", "queues", "concurrency", "busy")
		h.Lanes = append(h.Lanes, Lane{shown(m[0], &h.Cut), names(m[1], &h.Cut), whole(m[2]), whole(m[3])})
	})
	each(o.At("work"), maxWork, &h.Cut, func(_, work gjson.Result) {
		m := membersOf(work, "jid", "class", "queue", "started_at")
		h.Work = append(h.Work, Work{shown(m[0], &h.Cut), shown(m[1], &h.Cut), shown(m[2], &h.Cut), anyTime(m[3])})
	})
}

// each calls fn for at most limit members or items of a value. It uses no gjson path, because a
// label may have any name, even that of a member.
func each(v gjson.Result, limit int, cut *bool, fn func(name, item gjson.Result)) {
	if !v.IsArray() && !v.IsObject() {
		return
	}
	n := 0
	v.ForEach(func(name, item gjson.Result) bool {
		if n == limit {
			*cut = true
			return false
		}
		n++
		fn(name, item)
		return true
	})
}

// membersOf returns the values of an object's members by name, the first one of each name.
func membersOf(v gjson.Result, wanted ...string) []gjson.Result {
	found := make([]gjson.Result, len(wanted))
	if !v.IsObject() {
		return found
	}
	v.ForEach(func(name, value gjson.Result) bool {
		for i, w := range wanted {
			if name.String() == w && !found[i].Exists() {
				found[i] = value
			}
		}
		return true
	})
	return found
}

func names(v gjson.Result, cut *bool) (all []string) {
	each(v, maxList, cut, func(_, item gjson.Result) {
		if item.Type == gjson.String {
			all = append(all, shown(item, cut))
		}
	})
	return all
}

// shown returns a value as text for people: valid UTF-8 and not long. Objects and arrays are not
// text.
func shown(v gjson.Result, cut *bool) string {
	if v.Type == gjson.Null || v.Type == gjson.JSON {
		return ""
	}
	s := v.String()
	if len(s) > maxShown {
		*cut = true
		s = s[:maxShown]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// maxWhole is the largest number that every JSON parser reads exactly.
const maxWhole = 1 << 53

func whole(v gjson.Result) int64 {
	if v.Type != gjson.Number || !(v.Num >= 0 && v.Num <= maxWhole) {
		return 0
	}
	return int64(v.Num)
}

func anyTime(v gjson.Result) time.Time {
	if v.Type != gjson.Number {
		return time.Time{}
	}
	t, err := shared.ParseTime("", v)
	if err != nil {
		return time.Time{}
	}
	return t
}
