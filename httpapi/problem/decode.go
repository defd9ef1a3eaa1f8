package problem

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/labstack/echo/v4"
)

// ReadBody decodes a JSON object, if there is a body. It refuses unknown members: a misspelt one
// would change what is done.
func ReadBody(c echo.Context, into any) error {
	raw, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return err
	}
	if len(raw) == 0 {
		return nil
	}
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) == 0 || raw[0] != '{' { // null would be taken for an object
		return BadRequest("the body must be a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return BadRequest("the body is not valid: %s", Shorten(err.Error()))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return BadRequest("the body is not valid: there is more behind the JSON object")
	}
	return nil
}

// DecodeStrict decodes an object that chooses what a command applies to. A member that is null or
// empty would count as left out and choose something else, so DecodeStrict refuses it.
func DecodeStrict(raw []byte, into any, mayBeEmpty ...string) error {
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
