package wire

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A member that would count as left out is an error, also inside a rate or an override: it would
// not do what it says.
func TestLimitWithMembersThatSayNothing(t *testing.T) {
	for layer, says := range map[string]string{
		`{"concurrency":0}`: `member "concurrency" is a number from 1`,
		`{"rate":null}`:     `member "rate" is empty`,
		`{"rate":{"jobs":1,"seconds":1,"burst":0}}`:            `member "burst" is a number from 1`,
		`{"rate":{"jobs":1,"seconds":1,"burst":null}}`:         `member "burst" is a number from 1`,
		`{"overrides":{"every":{"concurrency":null}}}`:         `member "concurrency" is a number from 1`,
		`{"overrides":{"a":{"rate":null}}}`:                    `member "rate" is empty`,
		`{"overrides":{"every":{}},"rate":{"jobs":1}}`:         `seconds of a rate is a number from 1 to 2678400`,
		`{"overrides":{"every":{}},"per":["key"],"queues":[]}`: "",
	} {
		_, err := ParseLimit([]byte(layer))
		if says == "" {
			require.NoError(t, err, layer)
		} else {
			require.ErrorContains(t, err, says, layer)
		}
	}
}
