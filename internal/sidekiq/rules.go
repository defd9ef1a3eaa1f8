package sidekiq

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/millrace-jobs/millrace/wire"
)

// Rules say on which side each queue is worked.
type Rules struct {
	Queues    []string   // whose jobs Millrace's workers run; all but those of ToSidekiq if empty
	ToSidekiq []string   // whose jobs Sidekiq's workers run
	Keep      []KeepRule // classes that stay with Sidekiq, whichever queue they are in
}

// KeepRule puts the jobs of some classes into a queue that Sidekiq's workers run.
type KeepRule struct {
	Class string // may end with *
	Queue string
}

// ParseKeep reads a rule: CLASS=QUEUE.
func ParseKeep(text string) (KeepRule, error) {
	class, queue, found := strings.Cut(text, "=")
	if _, err := path.Match(class, ""); !found || class == "" || queue == "" || err != nil {
		return KeepRule{}, fmt.Errorf("%q is no rule: write CLASS=QUEUE, for example 'Report*=legacy'", text)
	}
	return KeepRule{class, queue}, nil
}

// Check says what is wrong with the rules.
func (r Rules) Check() error {
	for _, name := range slices.Concat(r.Queues, r.ToSidekiq) {
		if err := wire.CheckQueueName(name); err != nil {
			return fmt.Errorf("queue %q: %w", name, err)
		}
	}
	for i, name := range r.ToSidekiq {
		if slices.Contains(r.ToSidekiq[:i], name) {
			return fmt.Errorf("queue %q is named twice", name)
		}
		if slices.Contains(r.Queues, name) {
			return fmt.Errorf("queue %q is named on both sides: either Millrace's workers run its jobs, or Sidekiq's do", name)
		}
	}
	for _, k := range r.Keep {
		if !slices.Contains(r.ToSidekiq, k.Queue) {
			return fmt.Errorf("jobs of class %q are kept in queue %q, which Sidekiq's workers do not run: name it with --to-sidekiq too", k.Class, k.Queue)
		}
	}
	return nil
}

// takesList reports whether the jobs in Sidekiq's list of a queue come in.
func (r Rules) takesList(queue string) bool {
	return !r.out(queue) && (len(r.Queues) == 0 || slices.Contains(r.Queues, queue))
}

// out reports whether Sidekiq's workers run the jobs of a queue.
func (r Rules) out(queue string) bool { return slices.Contains(r.ToSidekiq, queue) }

// queueOf returns the queue of a job on the broker. ok is false if its queue is worked nowhere that
// the bridge knows.
func (r Rules) queueOf(class, queue string) (name string, ok bool) {
	if r.out(queue) {
		return queue, true
	}
	if !r.takesList(queue) {
		return "", false
	}
	for _, k := range r.Keep {
		if match, _ := path.Match(k.Class, class); match {
			return k.Queue, true
		}
	}
	return queue, true
}
