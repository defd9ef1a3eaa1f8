package wire

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Definitions is a document that defines what a program or a file wants to have. A list that is nil
// leaves what there is of its kind as it is.
type Definitions struct {
	Source       string            `json:"source"`
	Layer        string            `json:"layer,omitempty"`        // code, if it is empty
	PeriodicJobs []json.RawMessage `json:"periodic_jobs,omitzero"` // definitions, with a name each
	Limits       []json.RawMessage `json:"limits,omitzero"`        // the same
	Queues       []json.RawMessage `json:"queues,omitzero"`        // the same, of governed queues
}

// NamedLayer is a layer of a definition, with its name.
type NamedLayer struct {
	Name  string
	Value json.RawMessage
}

// Periodics returns the periodic jobs of a document, each with its members in one order.
func (d *Definitions) Periodics() ([]NamedLayer, error) {
	return named("periodic job", d.PeriodicJobs, CheckPeriodicName, func(value []byte) error {
		_, err := ParsePeriodic(value)
		return err
	})
}

// NamedLimits returns the limits of a document, each with its members in one order.
func (d *Definitions) NamedLimits() ([]NamedLayer, error) {
	return named("limit", d.Limits, CheckLimitName, func(value []byte) error {
		_, err := ParseLimit(value)
		return err
	})
}

// GovernedQueues returns the governed queues of a document, each with its members in one order.
func (d *Definitions) GovernedQueues() ([]NamedLayer, error) {
	return named("queue", d.Queues, CheckGovernedName, func(value []byte) error {
		_, err := ParseGoverned(value)
		return err
	})
}

// named takes the names out of definitions of one kind.
func named(kind string, list []json.RawMessage, checkName func(string) error, check func([]byte) error) (all []NamedLayer, err error) {
	seen := map[string]bool{}
	for _, raw := range list {
		var members map[string]json.RawMessage
		var name string
		if err := json.Unmarshal(raw, &members); err != nil {
			return nil, fmt.Errorf("%ss must be a list of objects", kind)
		}
		if err := json.Unmarshal(members["name"], &name); err != nil {
			return nil, fmt.Errorf("a %s has no name", kind)
		}
		delete(members, "name")
		if err := checkName(name); err != nil {
			return nil, err
		}
		if seen[name] {
			return nil, fmt.Errorf("%s %q is defined twice", kind, name)
		}
		seen[name] = true
		value, err := json.Marshal(members)
		if err == nil {
			err = check(value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", kind, name, err)
		}
		all = append(all, NamedLayer{name, value})
	}
	return all, nil
}

// Check returns an error if the document cannot be taken.
func (d *Definitions) Check() error {
	if d.PeriodicJobs == nil && d.Limits == nil && d.Queues == nil {
		return errors.New("it defines nothing: give periodic_jobs, limits or queues, a list, which is empty if the source defines none any more")
	}
	_, err := d.Periodics()
	if err == nil {
		_, err = d.NamedLimits()
	}
	if err == nil {
		_, err = d.GovernedQueues()
	}
	return err
}

// DefineResult says what a command define did, by the names of what is defined. In a document with
// several kinds, the names of all are in it.
type DefineResult struct {
	Made      []string `json:"made"`
	Changed   []string `json:"changed"`
	Forgotten []string `json:"forgotten"`
	Unchanged int      `json:"unchanged"`
}
