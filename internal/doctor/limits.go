package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

const limitsSubject = "limits"

// slotsFreed is what the API calls the problem that slots were freed whose jobs were gone.
const slotsFreed = "slots_freed"

// seenFor is for how long a class is known after its last run.
const seenFor = 30 * 24 * time.Hour

// limits looks for limits that hold nothing back, because of a mistake, and for workers that do not
// report ends.
func (e *examination) limits(ctx context.Context) error {
	all, err := e.cfg.API.Limits(ctx)
	if err != nil || len(all) == 0 {
		return nil // an older sidecar has none
	}
	before := len(e.findings)
	named, classes := map[string][]string{}, map[string][]string{}
	for i := range all {
		l := &all[i]
		if l.State == "incomplete" {
			e.reportOn(limitsSubject, failure, fmt.Sprintf("%s holds nothing back: %s", l.Name, l.Problem), "define it again, or delete it: millrace limits delete "+l.Name)
		}
		var def wire.Limit
		if json.Unmarshal(l.Definition, &def) != nil {
			continue
		}
		for _, queue := range def.Queues {
			named[queue] = append(named[queue], l.Name)
		}
		for _, class := range def.Classes {
			classes[class] = append(classes[class], l.Name)
		}
	}
	if err := e.unknownQueues(ctx, named); err != nil {
		return err
	}
	e.unseenClasses(ctx, classes)
	e.unreportedEnds(ctx)
	if len(e.findings) == before {
		e.reportOn(limitsSubject, ok, wire.Counted(int64(len(all)), "limit")+": their queues and classes are known", "")
	}
	return nil
}

// unknownQueues reports queues that limits name and that do not exist. The sidecar makes a queue
// for its first job, so this is only a hint.
func (e *examination) unknownQueues(ctx context.Context, named map[string][]string) error {
	there, err := e.consumed(ctx)
	if err != nil || there == nil {
		return err
	}
	e.unknown(named, func(queue string) bool {
		_, is := there[wire.QueuePrefix+queue]
		return is
	}, "queue %q of limit %s does not exist", "if no job is to come, correct the name")
	return nil
}

// unseenClasses reports classes that limits name and of which no worker has reported a job.
func (e *examination) unseenClasses(ctx context.Context, named map[string][]string) {
	if len(named) == 0 {
		return
	}
	ran, complete, err := e.cfg.API.ClassesSince(ctx, time.Now().Add(-seenFor))
	if err != nil || !complete {
		return
	}
	e.unknown(named, func(class string) bool { return ran[class] }, "no job of class %q of limit %s has run in the last 30 days", "if none is to come, correct the name")
}

// unknown reports names in limits that are not known.
func (e *examination) unknown(named map[string][]string, known func(string) bool, text, remedy string) {
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if !known(name) {
			e.reportOn(limitsSubject, note, fmt.Sprintf(text, name, strings.Join(named[name], ", ")), remedy)
		}
	}
}

// unreportedEnds reports that slots were freed whose jobs were gone.
func (e *examination) unreportedEnds(ctx context.Context) {
	texts, err := e.cfg.API.Problems(ctx, slotsFreed)
	if err != nil {
		return
	}
	for _, text := range texts {
		e.reportOn(limitsSubject, note, text, "see which workers run these jobs, and let them report ends: docs/client-contract.md#limits")
	}
}
