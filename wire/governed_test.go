package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func TestGovernedQueuesAreChecked(t *testing.T) {
	for _, good := range []string{`{}`, `{"key":"args.0.customer","max_waiting":1,"weights":{"a":3},"ahead":5,"paused":true}`, `{"key":"class"}`} {
		_, err := wire.ParseGoverned([]byte(good))
		require.NoError(t, err, good)
	}
	for bad, says := range map[string]string{
		`{"key":"a..b"}`:         "path",
		`{"key":".a"}`:           "path",
		`{"key":""}`:             "empty",
		`{"max_waiting":-1}`:     "max_waiting",
		`{"max_waiting":0}`:      `member "max_waiting" is a number from 1`,
		`{"ahead":0}`:            `member "ahead" is a number from 1`,
		`{"ahead":1000001}`:      "ahead",
		`{"weights":{"a":0}}`:    "weight",
		`{"weights":{"a":1001}}`: "weight",
		`{"weight":{"a":1}}`:     "unknown field",
	} {
		_, err := wire.ParseGoverned([]byte(bad))
		require.ErrorContains(t, err, says, bad)
	}
}

func TestQueueIsFullUntilATenthIsGone(t *testing.T) {
	q := wire.GovernedQueue{MaxWaiting: 20}
	for waiting, full := range map[int64][2]bool{17: {false, false}, 18: {false, true}, 19: {false, true}, 20: {true, true}} {
		require.Equal(t, full, [2]bool{q.Full(waiting, false), q.Full(waiting, true)}, waiting)
	}
	require.False(t, (&wire.GovernedQueue{}).Full(1000, true), "any number may wait")
}

func TestLayersOfGovernedQueues(t *testing.T) {
	q := wire.DefinedQueue{Name: "q", Layers: map[string]wire.DefinedLayer{
		wire.LayerCode: {Value: json.RawMessage(`{"key":"args.0","ahead":5}`)}, wire.LayerOperator: {Value: json.RawMessage(`{"ahead":7}`)}}}
	def, err := q.Definition()
	require.NoError(t, err)
	require.Equal(t, wire.GovernedQueue{Key: "args.0", Ahead: 7}, def)
	require.True(t, q.Governs())
	require.False(t, (&wire.DefinedQueue{State: wire.QueueLeaving}).Governs())
}

func TestDocumentsDefineGovernedQueues(t *testing.T) {
	d := wire.Definitions{Queues: []json.RawMessage{json.RawMessage(`{"name":"a b ü","ahead":2,"key":"args.0"}`)}}
	require.NoError(t, d.Check())
	all, err := d.GovernedQueues()
	require.NoError(t, err)
	require.Equal(t, []wire.NamedLayer{{Name: "a b ü", Value: json.RawMessage(`{"ahead":2,"key":"args.0"}`)}}, all)
	for _, bad := range []string{`{"ahead":2}`, `{"name":""}`, `{"name":"a\nb"}`} {
		require.Error(t, (&wire.Definitions{Queues: []json.RawMessage{json.RawMessage(bad)}}).Check(), bad)
	}
}
