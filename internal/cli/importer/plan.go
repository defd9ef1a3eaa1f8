package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
)

// Plan is what an import would do.
type Plan struct {
	Jobs    int64     `json:"jobs"`
	Refused int64     `json:"refused"`
	Groups  []Group   `json:"groups"`
	More    int64     `json:"more_jobs,omitempty"` // jobs of further groups
	First   []Preview `json:"first"`
	Reasons []Refusal `json:"reasons"`
	Unseen  []string  `json:"fields_without_values,omitempty"`
}

// Group is jobs of one state, class and queue.
type Group struct {
	State State  `json:"state"`
	Class string `json:"class"`
	Queue string `json:"queue"`
	Jobs  int64  `json:"jobs"`
}

// Preview is a job as it would be entered: the command to the leader, or the record of the stream.
type Preview struct {
	Line    int64           `json:"line"`
	State   State           `json:"state"`
	Entered json.RawMessage `json:"entered"`
}

const (
	mostGroups   = 1000
	mostPreviews = 3
)

// DryRun reads all lines and enters nothing. It writes no file.
func DryRun(ctx context.Context, c Config) (*Plan, error) {
	_, lines, err := c.open()
	if err != nil {
		return nil, err
	}
	p := &Plan{Groups: []Group{}, First: []Preview{}, Reasons: []Refusal{}}
	groups := map[Group]int64{}
	in := &reader{lines, &maker{c.Name, c.Fields}, linesOfBatch}
	err = in.each(ctx, func(b *batch) error {
		p.Jobs += int64(len(b.entries))
		p.Refused += int64(len(b.refused))
		p.Reasons = append(p.Reasons, b.refused[:min(len(b.refused), mostReasons-len(p.Reasons))]...)
		for _, e := range b.entries {
			if len(p.First) < mostPreviews {
				p.First = append(p.First, Preview{e.line.number, e.state, e.body})
			}
			group := Group{State: e.state, Class: e.class, Queue: e.queue}
			if _, counted := groups[group]; !counted && len(groups) == mostGroups {
				p.More++
				continue
			}
			groups[group]++
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, group := range slices.SortedFunc(maps.Keys(groups), compareGroups) {
		group.Jobs = groups[group]
		p.Groups = append(p.Groups, group)
	}
	if c.Fields != nil {
		p.Unseen = c.Fields.Unseen()
	}
	return p, nil
}

func compareGroups(a, b Group) int {
	return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Queue, b.Queue))
}
