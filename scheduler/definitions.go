package scheduler

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/millrace-jobs/millrace/scheduler/periodic"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// definedKind is a kind of what sources define: periodic jobs, limits or governed queues.
type definedKind struct {
	kind   string // as the journal names it
	word   string // for messages
	most   int    // how many there can be
	names  []string
	layers func(name string) map[string]wire.DefinedLayer // nil if there is none
	// check returns an error if the layers make no complete definition.
	check func(name string, layers map[string]wire.DefinedLayer) error
}

func periodicKind(known *tracker.PeriodicJobs) *definedKind {
	k := &definedKind{kind: wire.KindPeriodic, word: "periodic job", most: wire.MaxPeriodic, check: checkPeriodic,
		layers: func(name string) map[string]wire.DefinedLayer {
			if j := known.PeriodicJob(name); j != nil {
				return j.Layers
			}
			return nil
		}}
	for _, j := range known.PeriodicJobs() {
		k.names = append(k.names, j.Name)
	}
	return k
}

func limitKind(known *tracker.Limits) *definedKind {
	k := &definedKind{kind: wire.KindLimit, word: "limit", most: wire.MaxLimits, check: checkLimit,
		layers: func(name string) map[string]wire.DefinedLayer {
			if d := known.Limit(name); d != nil {
				return d.Layers
			}
			return nil
		}}
	for _, d := range known.Limits() {
		k.names = append(k.names, d.Name)
	}
	return k
}

func queueKind(known *tracker.GovernedQueues) *definedKind {
	k := &definedKind{kind: wire.KindQueue, word: "governed queue", most: wire.MaxGoverned, check: checkGoverned,
		layers: func(name string) map[string]wire.DefinedLayer {
			if q := known.GovernedQueue(name); q != nil && q.Governs() {
				return q.Layers
			}
			return nil
		}}
	for _, q := range known.GovernedQueues() {
		if q.Governs() {
			k.names = append(k.names, q.Name)
		}
	}
	return k
}

func checkGoverned(name string, layers map[string]wire.DefinedLayer) error {
	_, err := (&wire.DefinedQueue{Name: name, Layers: layers}).Definition()
	return err
}

func checkPeriodic(name string, layers map[string]wire.DefinedLayer) error {
	def, err := (&wire.PeriodicJob{Name: name, Layers: layers}).Definition()
	if err != nil {
		return err
	}
	if _, err := periodic.New(&def); err != nil {
		return err
	}
	_, err = def.TickEntry(name, wire.TickJID(name, 0), 0, 0)
	return err
}

func checkLimit(name string, layers map[string]wire.DefinedLayer) error {
	_, err := (&wire.DefinedLimit{Name: name, Layers: layers}).Definition()
	return err
}

// defining collects what a command changes.
type defining struct {
	layer, source string
	changes       []wire.Defined
	did           wire.DefineResult
}

// errConflict wraps why a definition conflicts with another.
var errConflict = errors.New("conflict")

func refusal(err error) wire.Reply {
	if errors.Is(err, errConflict) {
		return conflict(err.Error())
	}
	return badRequest(err.Error())
}

// section sets what a document has of one kind.
func (c *defining) section(kind *definedKind, wanted []wire.NamedLayer) error {
	made := len(c.did.Made)
	for _, one := range wanted {
		if err := c.set(kind, one); err != nil {
			return err
		}
	}
	if c.layer != wire.LayerOperator {
		c.forgetOthers(kind, wanted)
	}
	if n := len(kind.names) + len(c.did.Made) - made; n > kind.most {
		return fmt.Errorf("%w: that would be %d %ss, at most %d are allowed", errConflict, n, kind.word, kind.most)
	}
	return nil
}

// set sets the layer of one definition.
func (c *defining) set(kind *definedKind, one wire.NamedLayer) error {
	layers := kind.layers(one.Name)
	before, had := layers[c.layer]
	if had && c.layer != wire.LayerOperator && before.Source != c.source {
		return fmt.Errorf("%w: %s %q is defined by source %q: remove it there, or delete it", errConflict, kind.word, one.Name, before.Source)
	}
	if had && bytes.Equal(before.Value, one.Value) {
		c.did.Unchanged++
		return nil
	}
	with := map[string]wire.DefinedLayer{}
	maps.Copy(with, layers)
	with[c.layer] = wire.DefinedLayer{Value: one.Value}
	if err := kind.check(one.Name, with); err != nil {
		return fmt.Errorf("%s %q: %w", kind.word, one.Name, err)
	}
	c.changes = append(c.changes, wire.Defined{Kind: kind.kind, Name: one.Name, Layer: c.layer, Source: c.source, Value: one.Value})
	if len(layers) == 0 {
		c.did.Made = append(c.did.Made, one.Name)
	} else {
		c.did.Changed = append(c.did.Changed, one.Name)
	}
	return nil
}

// forgetOthers removes what the source had and does not name any more.
func (c *defining) forgetOthers(kind *definedKind, wanted []wire.NamedLayer) {
	named := map[string]bool{}
	for _, one := range wanted {
		named[one.Name] = true
	}
	for _, name := range kind.names {
		if l, has := kind.layers(name)[c.layer]; has && l.Source == c.source && !named[name] {
			c.changes = append(c.changes, wire.Defined{Kind: kind.kind, Name: name, Layer: c.layer, Source: c.source})
			c.did.Forgotten = append(c.did.Forgotten, name)
		}
	}
}

// pausing returns the change of the operator's layer that pauses or resumes what is defined, nil if
// it is so already. A resume leaves no layer that says nothing: it would keep what is defined when
// its other layers are forgotten.
func pausing(kind *definedKind, name string, layers map[string]wire.DefinedLayer, pauses bool) (*wire.Defined, error) {
	is, err := paused(layers)
	if err != nil || is == pauses {
		return nil, err
	}
	others := maps.Clone(layers)
	delete(others, wire.LayerOperator)
	byOthers, err := paused(others)
	if err != nil {
		return nil, err
	}
	members := map[string]json.RawMessage{}
	if l, has := layers[wire.LayerOperator]; has {
		if err := json.Unmarshal(l.Value, &members); err != nil {
			return nil, err
		}
	}
	change := &wire.Defined{Kind: kind.kind, Name: name, Layer: wire.LayerOperator, Op: "paused"}
	if !pauses {
		change.Op = "resumed"
	}
	if delete(members, "paused"); pauses || byOthers {
		members["paused"] = json.RawMessage(strconv.FormatBool(pauses))
	}
	if len(members) == 0 && len(others) > 0 {
		return change, nil // the layer is removed
	}
	change.Value, err = json.Marshal(members)
	return change, err
}

// paused returns what the strongest layer says that says whether it is paused.
func paused(layers map[string]wire.DefinedLayer) (is bool, err error) {
	for _, layer := range wire.Layers {
		said := struct{ Paused *bool }{&is}
		if l, has := layers[layer]; has {
			err = cmp.Or(err, json.Unmarshal(l.Value, &said))
		}
	}
	return is, err
}
