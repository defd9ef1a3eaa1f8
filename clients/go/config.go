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

// Version is the version of this library.
const Version = "0.1.0"

// WorkerConfig says which queues a worker serves, and how. The zero value serves the queue
// "default" of the broker at DefaultURL.
type WorkerConfig struct {
	// URL is amqp://user:password@host:port/vhost, or amqps://. It may name several hosts, as
	// host:port,host:port. If it is empty, it is DefaultURL.
	URL  string
	URLs []string // one for each host, in place of a URL with commas
	// Queues are served in strict order: the first one that has a job comes first. If Queues,
	// Weights and Lanes are all empty, the worker serves "default".
	Queues      []string
	Weights     map[string]int // in place of Queues: each is served in proportion to its weight
	Concurrency int            // how many jobs run concurrently; 5 if zero
	Lanes       []Lane         // more pools, with their own queues and slots

	Tag         string            // part of the identity, for people
	Labels      map[string]string // shown with the worker
	Version     string            // of your program; this library's if empty
	StopTimeout time.Duration     // how long running jobs may continue after Stop; 25 s if zero
	// MaxDeaths is how many workers may die while they run a job, before the job becomes a dead
	// job. It is 3 if zero, and unlimited if negative.
	MaxDeaths int
	// Record, if set, returns more properties of the retry or dead job of a job.
	Record    func(*RawJob) RecordProperties
	NoDeclare bool          // wait for queues instead of declaring them
	Heartbeat time.Duration // interval between heartbeats; 10 s if zero
	Logger    *slog.Logger  // slog.Default() if nil; slog.DiscardHandler silences the worker

	Credentials CredentialsFunc // returns user and password of each connection; the URL's if nil
	// TLS is for amqps:// URLs: a private authority, or a client certificate. If it is nil, the
	// parameters of the URL apply.
	TLS *tls.Config
}

// RecordProperties are properties of the message of a retry or dead job.
type RecordProperties struct {
	UserID  string            // user_id; the broker refuses the message if it is not the worker's own user
	Headers map[string]string // besides traceparent
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

// lanes returns all lanes, the worker's own first.
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

// Check returns an error if the configuration is not valid. Run returns the same error.
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
			return fmt.Errorf("queue %q is named twice", q)
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

// identity returns the name of this process in heartbeats. The tag may be empty.
func identity(tag string) string {
	if tag != "" {
		tag = ":" + tag
	}
	return fmt.Sprintf("%s:%d%s", hostname(), os.Getpid(), tag)
}
