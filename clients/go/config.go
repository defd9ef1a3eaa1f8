package millrace

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// Version is this library's.
const Version = "0.1.0"

// WorkerConfig says what a worker works on, and how. The zero value works on the queue "default" of the broker at DefaultURL.
type WorkerConfig struct {
	URL         string         // DefaultURL if empty. amqp://user:password@host:port/vhost, or amqps://; several hosts: host:port,host:port
	URLs        []string       // in place of a URL with commas: one for each host
	Queues      []string       // strict: the first that has a job is served. "default" if there are neither Queues, Weights nor Lanes
	Weights     map[string]int // in place of Queues: each is served in proportion to its weight
	Concurrency int            // how many jobs run at once; 5 if zero
	Lanes       []Lane         // more pools, with queues and slots of their own

	Tag         string            // part of the identity, for people
	Labels      map[string]string // shown beside the worker
	Version     string            // of your program; this library's if empty
	StopTimeout time.Duration     // how long running jobs may go on after Stop; 25 s if zero
	MaxDeaths   int               // a job that has seen so many workers die is poison; 3 if zero, never if negative
	NoDeclare   bool              // wait for queues instead of declaring them
	Heartbeat   time.Duration     // between two heartbeats; 10 s if zero
	Logger      *slog.Logger      // slog.Default() if nil; slog.New(slog.DiscardHandler) silences the worker

	Credentials CredentialsFunc // called for each connection, in place of the URL's user; the URL's user if nil
	TLS         *tls.Config     // for amqps:// URLs: a private authority, a client certificate; that of the URL's parameters if nil
}

// Lane is a pool of slots for some queues, so that quick jobs never wait for slow ones.
type Lane struct {
	Name        string
	Queues      []string
	Weights     map[string]int // in place of Queues
	Concurrency int            // 5 if zero
}

const (
	defaultConcurrency = 5
	defaultStopTimeout = 25 * time.Second
	defaultMaxDeaths   = 3
	defaultBeat        = 10 * time.Second
)

func (c WorkerConfig) withDefaults() WorkerConfig {
	if c.Version == "" {
		c.Version = Version
	}
	if c.StopTimeout <= 0 {
		c.StopTimeout = defaultStopTimeout
	}
	if c.MaxDeaths == 0 {
		c.MaxDeaths = defaultMaxDeaths
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = defaultBeat
	}
	if c.Labels == nil {
		c.Labels = map[string]string{}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// lanes are all lanes, the worker's own first.
func (c WorkerConfig) lanes() []Lane {
	var all []Lane
	if len(c.Queues)+len(c.Weights) > 0 || len(c.Lanes) == 0 {
		own := Lane{Name: "default", Queues: c.Queues, Weights: c.Weights, Concurrency: c.Concurrency}
		if len(c.Queues)+len(c.Weights) == 0 {
			own.Queues = []string{wire.DefaultQueue}
		}
		all = append(all, own)
	}
	return append(all, c.Lanes...)
}

func (c WorkerConfig) hosts() (*hosts, error) {
	return newHosts(urlsOf(c.URL, c.URLs), login{c.Credentials, c.TLS})
}

// Check says what is wrong with a configuration. Run says the same.
func (c WorkerConfig) Check() error {
	if _, err := c.hosts(); err != nil {
		return err
	}
	names := map[string]bool{}
	for _, l := range c.lanes() {
		if err := l.check(); err != nil {
			return fmt.Errorf("millrace: lane %q: %w", l.Name, err)
		}
		if names[l.Name] {
			return fmt.Errorf("millrace: two lanes are called %q", l.Name)
		}
		names[l.Name] = true
	}
	if strings.Contains(c.Tag, ":") {
		return fmt.Errorf("millrace: the tag %q has a colon", c.Tag)
	}
	return nil
}

func (l Lane) check() error {
	if (len(l.Queues) > 0) == (len(l.Weights) > 0) {
		return fmt.Errorf("it needs Queues or Weights, and not both")
	}
	seen := map[string]bool{}
	for _, q := range l.Queues {
		if err := wire.CheckQueueName(q); err != nil {
			return err
		}
		if seen[q] {
			return fmt.Errorf("queue %q stands twice", q)
		}
		seen[q] = true
	}
	for q, weight := range l.Weights {
		if err := wire.CheckQueueName(q); err != nil {
			return err
		}
		if weight < 1 {
			return fmt.Errorf("queue %q has weight %d", q, weight)
		}
	}
	if l.Concurrency < 0 {
		return fmt.Errorf("concurrency is %d", l.Concurrency)
	}
	return nil
}

func identity(tag string) string { return fmt.Sprintf("%s:%d:%s", hostname(), os.Getpid(), tag) }
