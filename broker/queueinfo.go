package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"
)

// QueueInfo is one queue as the management API reports it. Its figures are a few seconds old.
type QueueInfo struct {
	Name            string
	Type            string // classic, quorum, stream
	Node            string // of a classic queue, or of the leader; empty on LavinMQ
	Mirrored        bool   // classic, with copies on other nodes: it may move to one of them
	Durable         bool
	Exclusive       bool
	Messages        int64
	Counted         bool // the broker has counted Messages: without statistics it does not
	Ready           int64
	Unacked         int64
	Consumers       int64
	State           string   // running, idle, closed, down, …
	Members         []string // nodes with a replica of a stream or quorum queue
	Online          []string // Members that are online
	Arguments       map[string]any
	Policy          string         // the one policy that applies; empty if none does
	OperatorPolicy  string         // merged with Policy
	Definition      map[string]any // of both policies
	Overflow        string         // beyond the limits: drop-head or empty, reject-publish[-dlx]
	MaxLength       int64          // messages; 0 is no limit
	MaxLengthBytes  int64          // 0 is no limit
	DeadLetterTo    string         // exchange; if empty, jobs that a worker rejects are lost
	MemoryBytes     int64
	MessageBytes    int64
	PublishRate     float64   // messages a second
	DeliverRate     float64   // messages a second, acknowledged or not
	AckRate         float64   // messages a second
	Published       int64     // messages, since the broker began to count
	Delivered       int64     // likewise
	Acked           int64     // likewise
	HeadTimestamp   time.Time // of the oldest message; zero if not reported
	IdleSince       time.Time // zero if not reported
	refusesByPolicy bool
}

// MayRefuse reports whether the queue may nack a publish although the broker is healthy.
func (q QueueInfo) MayRefuse() bool { return q.refusesByPolicy }

// queueColumns are the columns that QueueInfo needs. RabbitMQ sends three times as much without
// them.
const queueColumns = "name,type,node,leader,members,online,durable,exclusive,messages,messages_ready,messages_unacknowledged,consumers,state,arguments,policy," +
	"operator_policy,effective_policy_definition,memory,message_bytes,total_bytes,message_stats,head_message_timestamp,idle_since"

// Queues returns the queues of the virtual host, with one request.
func (m *Management) Queues(ctx context.Context) ([]QueueInfo, error) {
	var said []queueObject
	if err := m.get(ctx, "/api/queues/"+segment(m.vhost)+"?columns="+queueColumns, &said); err != nil {
		return nil, err
	}
	queues := make([]QueueInfo, len(said))
	for i := range said {
		queues[i] = said[i].info(m.features)
	}
	return queues, nil
}

type queueObject struct {
	Name           string   `json:"name"`
	Type           string   `json:"type"`
	Durable        bool     `json:"durable"`
	Exclusive      bool     `json:"exclusive"`
	Messages       *number  `json:"messages"`
	Ready          number   `json:"messages_ready"`
	Unacked        number   `json:"messages_unacknowledged"`
	Consumers      number   `json:"consumers"`
	State          string   `json:"state"`
	Node           string   `json:"node"`
	Leader         string   `json:"leader"`
	Members        []string `json:"members"`
	Online         []string `json:"online"`
	Arguments      object   `json:"arguments"`
	Policy         *string  `json:"policy"`
	OperatorPolicy *string  `json:"operator_policy"`
	Definition     object   `json:"effective_policy_definition"`
	Memory         number   `json:"memory"`
	MessageBytes   number   `json:"message_bytes"`
	TotalBytes     number   `json:"total_bytes"` // LavinMQ's message_bytes
	HeadTimestamp  number   `json:"head_message_timestamp"`
	IdleSince      string   `json:"idle_since"`
	Stats          struct {
		Published number `json:"publish"`
		Delivered number `json:"deliver_get"`
		Acked     number `json:"ack"`
		Publish   rate   `json:"publish_details"`
		Deliver   rate   `json:"deliver_get_details"`
		Ack       rate   `json:"ack_details"`
	} `json:"message_stats"`
}

type rate struct {
	Rate float64 `json:"rate"`
}

// number is an integer that the broker may write in any form, or leave out.
type number int64

func (n *number) UnmarshalJSON(raw []byte) error {
	var f float64
	if json.Unmarshal(raw, &f) == nil {
		*n = number(f)
	}
	return nil
}

func (o *queueObject) info(f Features) QueueInfo {
	q := QueueInfo{
		Name: o.Name, Type: o.Type, Node: cmp.Or(o.Node, o.Leader), Members: o.Members, Online: o.Online,
		Durable: o.Durable, Exclusive: o.Exclusive, State: o.State,
		Counted: o.Messages != nil, Ready: int64(o.Ready), Unacked: int64(o.Unacked), Consumers: int64(o.Consumers),
		Arguments: o.Arguments, Policy: deref(o.Policy), OperatorPolicy: deref(o.OperatorPolicy), Definition: o.Definition,
		MemoryBytes: int64(o.Memory), MessageBytes: int64(max(o.MessageBytes, o.TotalBytes)),
		PublishRate: o.Stats.Publish.Rate, DeliverRate: o.Stats.Deliver.Rate, AckRate: o.Stats.Ack.Rate,
		Published: int64(o.Stats.Published), Delivered: int64(o.Stats.Delivered), Acked: int64(o.Stats.Acked),
	}
	if q.Counted {
		q.Messages = int64(*o.Messages)
	}
	if q.Type == "" { // LavinMQ
		q.Type, _ = o.Arguments["x-queue-type"].(string)
		q.Type = cmp.Or(q.Type, "classic")
	}
	_, q.Mirrored = o.Definition["ha-mode"]
	q.Overflow = o.text("overflow")
	q.DeadLetterTo = o.text("dead-letter-exchange")
	q.MaxLength = o.least("max-length")
	q.MaxLengthBytes = o.least("max-length-bytes")
	q.refusesByPolicy = q.Overflow == "reject-publish" || q.Overflow == "reject-publish-dlx" && !f.RejectPublishDLXDrops
	if o.HeadTimestamp > 0 {
		q.HeadTimestamp = time.Unix(int64(o.HeadTimestamp), 0)
	}
	q.IdleSince = idleSince(o.IdleSince)
	return q
}

// text returns a setting that may be an argument or part of a policy. The argument wins.
func (o *queueObject) text(name string) string {
	if s, given := o.Arguments["x-"+name].(string); given {
		return s
	}
	s, _ := o.Definition[name].(string)
	return s
}

// least returns a limit that may be an argument, part of a policy, or both. The smaller one
// applies.
func (o *queueObject) least(name string) int64 {
	argument, _ := o.Arguments["x-"+name].(float64)
	policy, _ := o.Definition[name].(float64)
	if argument > 0 && (policy <= 0 || argument < policy) {
		return int64(argument)
	}
	return int64(policy)
}

func idleSince(s string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, time.DateTime} {
		if t, err := time.Parse(layout, strings.TrimSpace(s)); err == nil {
			return t
		}
	}
	return time.Time{}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
