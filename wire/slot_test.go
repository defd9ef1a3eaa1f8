package wire

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "github.com/millrace-jobs/millrace/internal/rapidseed"
)

func drawSlot(t *rapid.T) Slot {
	stream := rapid.SampledFrom(EntryStreams).Draw(t, "stream")
	return Slot{stream, rapid.Int64().Draw(t, "offset"), rapid.Int64().Draw(t, "epoch"), rapid.Int64().Draw(t, "seq"), JIDTag(rapid.String().Draw(t, "jid"))}
}

// A record says of one job, or of up to a hundred jobs, that they have ended.
func TestEndsAreParsedAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(drawSlot), 1, MaxEnds).Draw(t, "slots")
		e := End{Type: TypeEnded, Process: "w", At: 1.5}
		for _, s := range want {
			e.Slots = append(e.Slots, s.String())
		}
		if len(want) == 1 && rapid.Bool().Draw(t, "alone") {
			e.Slot, e.Slots = e.Slots[0], nil
		}
		m, err := e.Message()
		require.NoError(t, err)
		read, all, err := ParseEnd(m.Body)
		require.NoError(t, err, "%s", m.Body)
		require.Equal(t, e, read)
		require.Equal(t, want, all)
	})
}

func TestRefusedEnds(t *testing.T) {
	many := func(n int) string {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprintf("g.%d.1.1.a", i)
		}
		body, err := json.Marshal(texts)
		require.NoError(t, err)
		return string(body)
	}
	rest := map[string]int{`"type":"ended","slots":["g.1.2.3.a","x","g.1.2.3.b"]`: 2}
	for members, says := range map[string]string{
		`"type":"ended","slot":"g.1.2.3.a"`:                         "",
		`"type":"ended","slot":"g.1.2.3.a","slots":null`:            "",
		`"type":"ended","slots":` + many(MaxEnds):                   "",
		`"type":"claimed","slot":"g.1.2.3.a"`:                       "",
		`"type":"ended"`:                                            `"" is no slot`,
		`"type":"ended","slots":null`:                               `"" is no slot`,
		`"type":"ended","slots":[]`:                                 `member "slots" has 0 slots: it must have 1 to 100`,
		`"type":"ended","slots":` + many(MaxEnds+1):                 `member "slots" has 101 slots`,
		`"type":"ended","slots":["g.1.2.3.a"],"slot":"g.1.2.3.a"`:   `members "slot" and "slots" exclude each other`,
		`"type":"ended","slots":["g.1.2.3.a","x","g.1.2.3.b"]`:      `"x" is no slot`,
		`"type":"ended","slots":["g.1.2.3.a",7]`:                    "record: ",
		`"type":"ended","slots":"g.1.2.3.a"`:                        "record: ",
		`"type":"claimed","slots":["g.1.2.3.a"]`:                    `member "slots" is for records of type ended`,
		`"type":"claimed","slot":"g.1.2.3.a","slots":["g.1.2.3.b"]`: `member "slots" is for records of type ended`,
	} {
		_, all, err := ParseEnd([]byte("{" + members + "}"))
		if says == "" {
			require.NoError(t, err, members)
			require.NotEmpty(t, all)
		} else {
			require.ErrorContains(t, err, says, members)
			require.Len(t, all, rest[members], members)
		}
	}
}
