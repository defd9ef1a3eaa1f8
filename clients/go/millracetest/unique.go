package millracetest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

// uniqueKeys are the keys of unique jobs that are taken. Nothing is put off in a test, so Wait and
// Max have no effect.
type uniqueKeys struct {
	mu    sync.Mutex
	taken map[string]taken
}

// taken says which job has a key. A job that is over has it until a time.
type taken struct {
	jid   string
	over  bool
	until time.Time
}

// uniqueKey returns the key of a job, and what is unique about it. The key is empty if the job is
// not unique.
func uniqueKey(j Job) (key string, unique gjson.Result) {
	unique = gjson.GetBytes(j.Body, "gate.unique")
	if !unique.IsObject() {
		return "", unique
	}
	if given := unique.Get("key"); given.Exists() {
		return "key:" + given.String(), unique
	}
	parts := []string{"args", "class", "queue"}
	if by := unique.Get("by"); by.Exists() {
		parts = nil
		for _, part := range by.Array() {
			parts = append(parts, part.String())
		}
		slices.Sort(parts)
	}
	var text strings.Builder
	for _, part := range slices.Compact(parts) {
		text.WriteString(part + "=" + gjson.GetBytes(j.Body, part).Raw + "\n")
	}
	return "by:" + text.String(), unique
}

// decide gives a job its key, or returns which job has it. replace removes a job that waits, and
// reports whether it did.
func (k *uniqueKeys) decide(j Job, replace func(jid string) bool) millrace.Decision {
	key, unique := uniqueKey(j)
	if key == "" {
		return millrace.Decision{JID: j.JID}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	holder, found := k.taken[key]
	held := found && (!holder.over || time.Now().Before(holder.until))
	if held && (unique.Get("on").String() != string(millrace.ReplaceWaiting) || !replace(holder.jid)) {
		return millrace.Decision{JID: holder.jid, Duplicate: true}
	}
	if k.taken == nil {
		k.taken = map[string]taken{}
	}
	k.taken[key] = taken{jid: j.JID, until: time.Now().Add(time.Duration(unique.Get("for").Float() * float64(time.Second)))}
	return millrace.Decision{JID: j.JID}
}

// begins frees the key of a job that has it only while it waits.
func (k *uniqueKeys) begins(j Job) {
	if _, unique := uniqueKey(j); unique.Get("while").String() == string(millrace.WhileWaiting) {
		k.ends(j)
	}
}

// ends frees the key of a job, if it does not have it for a longer time.
func (k *uniqueKeys) ends(j Job) {
	key, _ := uniqueKey(j)
	k.mu.Lock()
	defer k.mu.Unlock()
	if holder := k.taken[key]; holder.jid == j.JID {
		holder.over = true
		k.taken[key] = holder
	}
}

func (k *uniqueKeys) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.taken = nil
}

// EnqueueUnique takes a job, and returns which one stays if there is one with the same key. A
// duplicate is not taken.
func (p pusher) EnqueueUnique(ctx context.Context, args millrace.JobArgs, options *millrace.EnqueueOptions) (millrace.Decision, error) {
	_, decision, err := p.push(ctx, paramsOf(args, options).AsUnique())
	return decision, err
}
