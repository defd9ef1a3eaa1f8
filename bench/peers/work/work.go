// Package work says what the programs of `make bench-peers` do, and has the log that their handlers
// write. Programs in other languages than Go do the same on their own.
//
// The benchmark starts each program with an argument, its role, and with a Work as JSON in the
// environment:
//
//   - define defines limits, queues and periodic jobs, and ends.
//   - produce enqueues Jobs jobs, and ends. Job i has the key i modulo Keys.
//   - unique enqueues Jobs jobs by Producers producers, each after it has heard the answer to its last
//     one. Job i has the key i/2, so that every second job is a duplicate. Then it prints Decided.
//   - worker runs jobs until it is killed, and prints "ready" first. So does scheduler, which
//     enqueues periodic jobs, where that is a process of its own.
package work

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Environment is the environment variable that has the Work.
const Environment = "PEER_WORK"

// The rows of the table.
const (
	Keyed    = "keyed"
	Gaps     = "gaps"
	Rate     = "rate"
	Unique   = "unique"
	Periodic = "periodic"
	Killed   = "killed"
)

// Work is the work of one row.
type Work struct {
	Row      string `json:"row"` // also the name of the queue
	Redis    string `json:"redis"`
	Postgres string `json:"postgres"`
	AMQP     string `json:"amqp"`
	Log      string `json:"log"`

	Jobs      int `json:"jobs"`
	Keys      int `json:"keys"`
	Limit     int `json:"limit"`    // how many jobs of a key may run at once; no limit if zero
	Rate      int `json:"rate"`     // how many jobs may begin in a second; no limit if zero
	SleepMS   int `json:"sleep_ms"` // how long a job takes
	Slots     int `json:"slots"`    // how many jobs a worker runs concurrently
	Producers int `json:"producers"`
}

// Decided is the answer of a program that has enqueued unique jobs.
type Decided struct {
	Seconds  float64 `json:"seconds"`
	Accepted int     `json:"accepted"`
}

// FromEnvironment returns the work of this process.
func FromEnvironment() (w Work, err error) {
	return w, json.Unmarshal([]byte(os.Getenv(Environment)), &w)
}

// Log is the file into which handlers write when jobs begin and end.
type Log struct {
	file  *os.File
	sleep time.Duration
}

// OpenLog opens the log of the work.
func (w Work) OpenLog() (*Log, error) {
	file, err := os.OpenFile(w.Log, os.O_WRONLY|os.O_APPEND, 0)
	return &Log{file, time.Duration(w.SleepMS) * time.Millisecond}, err
}

// Run runs a job.
func (l *Log) Run(id, key int) error {
	if err := l.note('b', id, key); err != nil {
		return err
	}
	time.Sleep(l.sleep)
	return l.note('e', id, key)
}

// note writes a line in one system call. So lines of several processes do not mix, and a line is
// there even if the process is killed.
func (l *Log) note(what byte, id, key int) error {
	_, err := fmt.Fprintf(l.file, "%c %d %d %d %d\n", what, id, key, os.Getpid(), Now())
	return err
}
