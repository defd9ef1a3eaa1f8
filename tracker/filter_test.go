package tracker

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// A record matches if all conditions of the filter do. Conditions about the body match no record
// whose body the view does not keep.
func TestMatcher(t *testing.T) {
	e, err := wire.ParseEntry(retry, 3, []byte(`{"jid":"j","retry_at":100.5,"retry_count":1,"error_class":"Timeout","error_message":"Zu SPÄT","job":{"class":"Mail","queue":"low","tags":["x","y"]}}`))
	require.NoError(t, err)
	kept := newStored(&e)
	large := *kept
	large.Raw = nil
	at := func(seconds float64) *float64 { return &seconds }
	for _, c := range []struct {
		filter       wire.Filter
		kept, inside bool
	}{
		{wire.Filter{}, true, false},
		{wire.Filter{Queue: "low", Class: "Mail", JID: "j"}, true, false},
		{wire.Filter{Queue: "high", Class: "Mail"}, false, false},
		{wire.Filter{Class: "Post"}, false, false},
		{wire.Filter{JID: "k"}, false, false},
		{wire.Filter{From: at(100.5), To: at(100.500001)}, true, false},
		{wire.Filter{From: at(100.6)}, false, false},
		{wire.Filter{To: at(100.5)}, false, false},
		{wire.Filter{Error: "Timeout"}, true, true},
		{wire.Filter{Error: "Other"}, false, true},
		{wire.Filter{Error: wire.Fingerprint("Mail", "Timeout", "Zu SPÄT")}, true, true},
		{wire.Filter{Error: wire.Fingerprint("Mail", "Timeout", "Zu früh")}, false, true},
		{wire.Filter{Tag: "y"}, true, true},
		{wire.Filter{Tag: "z"}, false, true},
		{wire.Filter{Text: "zu sp"}, true, true},
		{wire.Filter{Text: "zu frueh"}, false, true},
		{wire.Filter{Text: "MAIL", Error: "Timeout", Tag: "x"}, true, true},
		{wire.Filter{Text: "MAIL", Tag: "z"}, false, true},
		{wire.Filter{Text: "MAIL", Queue: "high"}, false, true},
	} {
		m := NewMatcher(&c.filter)
		what := fmt.Sprintf("%+v", c.filter)
		require.Equal(t, c.kept, m.Match(kept), what)
		require.Equal(t, c.kept && !c.inside, m.Match(&large), what)
	}
	require.True(t, NewMatcher(nil).Match(kept), "without a filter, every record matches")
}
