package millrace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// Unique says which jobs count as the same as a job, and what becomes of a job when there is one of
// them already. The zero value is for jobs with the same class, queue and args: while one of them
// is unfinished, others are duplicates, which do not run.
type Unique struct {
	Key string // names the job; if it is empty, By does
	// By has the parts of the job that name it: class, queue, args, jid, or paths such as args.0
	// and args.0.customer. If it is empty, they are class, queue and args.
	By    []string
	While While         // how long the key is taken; WhileUnfinished if empty
	For   time.Duration // how long the key is taken in any case, from when the job was enqueued
	On    OnDuplicate   // what becomes of a duplicate; KeepFirst if empty
	Wait  time.Duration // how long the job is put off, again with each duplicate
	Max   time.Duration // how long it is put off in all
}

// While says how long a job takes its key.
type While string

// How long a job takes its key.
const (
	WhileUnfinished While = "unfinished" // until it has ended: while it waits, runs, or waits for a retry
	WhileWaiting    While = "waiting"    // until a worker can take it
)

// OnDuplicate says which of two jobs with the same key stays.
type OnDuplicate string

// Which of two jobs with the same key stays.
const (
	KeepFirst       OnDuplicate = "keep"
	ReplaceWaiting  OnDuplicate = "replace" // the later one, if the first still waits
	maxUniqueParts              = 16
	maxUniqueSpan               = 366 * 24 * time.Hour
	longestPartPath             = 200
)

// Decision says which job stays of several with the same key.
type Decision struct {
	JID       string // of the job that stays
	Duplicate bool   // it is another one than the job that was enqueued, which does not run
}

// ErrUndecided is returned by EnqueueUnique when the job is published, and there was no answer from
// the leader. A leader decides about the job later. Decision.JID is the jid of the job that was
// enqueued.
var ErrUndecided = errors.New("the job is published, and a leader will decide whether it is a duplicate")

// EnqueueUnique publishes a job, and waits until the leader has decided whether it is a duplicate
// of another one. It returns which of them stays. A job without EnqueueOptions.Unique has the zero
// Unique.
//
// The errors are those of Enqueue, and ErrUndecided if no leader has answered at the deadline. The
// Decision is empty if middleware did not publish the job.
func (c *Client) EnqueueUnique(ctx context.Context, args JobArgs, options *EnqueueOptions) (Decision, error) {
	job := paramsOf(args, options).AsUnique()
	var decision Decision
	job.decision = &decision
	jid, err := c.push(ctx, job)
	if err != nil {
		return Decision{JID: jid}, err
	}
	return decision, nil
}

// AsUnique returns the job as EnqueueUnique publishes it. It is for test helpers.
func (p EnqueueParams) AsUnique() EnqueueParams {
	p = p.withDefaults()
	if p.Options.Unique == nil {
		p.Options.Unique = &Unique{}
	}
	return p
}

// check returns an error if no job can be unique in this sense.
func (u *Unique) check() error {
	switch {
	case u == nil:
		return nil
	case u.Key != "" && u.By != nil:
		return errors.New("unique has a key and parts: choose one")
	case u.By != nil && len(u.By) == 0 || len(u.By) > maxUniqueParts:
		return fmt.Errorf("unique has %d parts, 1 to %d are allowed", len(u.By), maxUniqueParts)
	case !slices.Contains([]While{"", WhileUnfinished, WhileWaiting}, u.While):
		return fmt.Errorf("unique: while %q is not known", u.While)
	case !slices.Contains([]OnDuplicate{"", KeepFirst, ReplaceWaiting}, u.On):
		return fmt.Errorf("unique: on %q is not known", u.On)
	case u.Max != 0 && u.Wait == 0:
		return errors.New("unique: max needs wait")
	}
	for _, part := range u.By {
		if !isUniquePart(part) {
			return fmt.Errorf("unique: %.40q is no part of a job: use class, queue, args, jid, or a path such as args.0.customer", part)
		}
	}
	for name, span := range u.spans() {
		if span < 0 || span > maxUniqueSpan {
			return fmt.Errorf("unique: %s is %v, at most 366 days are allowed", name, span)
		}
	}
	if err := wire.CheckLimitKey(u.Key); err != nil {
		return fmt.Errorf("unique: %w", err)
	}
	return nil
}

func isUniquePart(part string) bool {
	path, nested := strings.CutPrefix(part, "args.")
	if nested {
		return len(part) <= longestPartPath && !slices.Contains(strings.Split(path, "."), "")
	}
	return slices.Contains([]string{"class", "queue", "args", "jid"}, part)
}

func (u *Unique) spans() map[string]time.Duration {
	return map[string]time.Duration{"for": u.For, "wait": u.Wait, "max": u.Max}
}

// members returns the member "unique" of a gate.
func (u *Unique) members() map[string]any {
	m := map[string]any{}
	for name, text := range map[string]string{"key": u.Key, "while": string(u.While), "on": string(u.On)} {
		if text != "" {
			m[name] = text
		}
	}
	if u.By != nil {
		m["by"] = u.By
	}
	for name, span := range u.spans() {
		if span > 0 {
			m[name] = span.Seconds()
		}
	}
	return m
}

// decide waits for the leader's answer about a job that is published.
func (a *answer) decide(ctx context.Context, jid string) (Decision, error) {
	body, err := a.answered(ctx)
	if err != nil {
		return Decision{JID: jid}, fmt.Errorf("%w: %w", ErrUndecided, err)
	}
	return decided(body)
}

// decided reads the leader's answer.
func decided(body []byte) (Decision, error) {
	var reply struct {
		Status      int    `json:"status"`
		JID         string `json:"jid"`
		DuplicateOf string `json:"duplicate_of"`
		Reason      string `json:"reason"`
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return Decision{}, fmt.Errorf("%w: cannot read the answer: %w", ErrUndecided, err)
	}
	switch reply.Status {
	case 201:
		return Decision{JID: reply.JID}, nil
	case 200:
		if reply.DuplicateOf != "" {
			reply.JID = reply.DuplicateOf
		}
		return Decision{JID: reply.JID, Duplicate: true}, nil
	}
	return Decision{}, fmt.Errorf("%w: %s", ErrRefused, reply.Reason)
}
