package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/millrace-jobs/millrace/wire"
)

// stated decodes an object that chooses what something is done to. A member that is null or empty would be as if it was not there, and
// choose what nobody meant.
func stated(raw []byte, into any, mayBeEmpty ...string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return err
	}
	for name, value := range members {
		if v := string(value); (v == "null" || v == `""`) && !slices.Contains(mayBeEmpty, name) {
			return fmt.Errorf("%s is %s: leave it out, or say what it is to be", name, v)
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// statedFilter is the filter of a request.
type statedFilter wire.Filter

func (f *statedFilter) UnmarshalJSON(raw []byte) error { return stated(raw, (*wire.Filter)(f)) }
