package broker

import (
	"time"

	"github.com/millrace-jobs/millrace/internal/hosts"
)

// Config says how to reach the broker. Only AMQPURL is required.
type Config struct {
	AMQPURL   string        // amqp(s)://user:password@host:port/vhost; commas separate hosts
	Hosts     *hosts.Order  // the order of the hosts, shared by connections; nil: any order
	Name      string        // name of the connection on the broker's pages; "millrace" if empty
	Heartbeat time.Duration // a lost peer is noticed after 1.5 of it; whole seconds, 5 s if zero
	QueueType QueueType     // of job queues that are created; QueueAuto if empty
}

// HasSeveralHosts reports whether the AMQP URL names more than one host.
func (c Config) HasSeveralHosts() bool {
	u, err := parseURL(c.AMQPURL)
	return err == nil && len(u.Hosts) > 1
}
