package millrace

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

type codeName string

func (n codeName) MarshalText() ([]byte, error) { return []byte("code " + string(n)), nil }

type embedded struct{ Inner string }

type textArgs struct {
	embedded
	Text    string            `json:"text"`
	Pointer *string           `json:",omitempty"`
	List    [1]any            `json:"list"`
	Map     map[string]string `json:"map"`
	Codes   map[codeName]int  `json:"codes"`
	Code    codeName          `json:"code"`
	Time    *time.Time        `json:"time"`
	Raw     json.RawMessage   `json:"raw"`
	Secret  string            `json:"-"`
	hidden  string
}

func (textArgs) Kind() string { return "Text" }

// Text that is not UTF-8 is refused anywhere in the args of a job. All other text is accepted.
func TestInvalidUTF8(t *testing.T) {
	bad := "a\xff"
	for name, wrong := range map[string]EnqueueParams{
		"field":    {Args: textArgs{Text: bad}},
		"embedded": {Args: textArgs{embedded: embedded{bad}}},
		"pointer":  {Args: &textArgs{Pointer: &bad}},
		"list":     {Args: textArgs{List: [1]any{[]string{bad}}}},
		"map":      {Args: textArgs{Map: map[string]string{"a": bad}}},
		"key":      {Args: textArgs{Map: map[string]string{bad: "a"}}},
		"code":     {Args: textArgs{Code: codeName(bad)}},
		"codes":    {Args: textArgs{Codes: map[codeName]int{codeName(bad): 1}}},
		"raw":      {Args: textArgs{Raw: json.RawMessage(`"` + bad + `"`)}},
		"in args":  {Args: Args("A", map[string]any{"a": []any{textArgs{Text: bad}}})},
		"a tag":    {Args: Args("A"), Options: EnqueueOptions{Tags: []string{bad}}},
		"a member": {Args: Args("A"), Options: EnqueueOptions{Fields: map[string]any{"a": textArgs{Text: bad}}}},
		"its name": {Args: Args("A"), Options: EnqueueOptions{Fields: map[string]any{bad: 1}}},
	} {
		_, _, err := wrong.Message(time.Now())
		require.ErrorIs(t, err, ErrInvalid, name)
		require.ErrorContains(t, err, "is not UTF-8", name)
	}
	_, _, err := EnqueueParams{Args: textArgs{Text: bad}}.Message(time.Now())
	require.EqualError(t, err, `invalid job: field text: the text "a\xff" is not UTF-8`)

	// With GOEXPERIMENT=jsonv2, the replacement is in the JSON without an escape.
	require.EqualError(t, checkText([]byte("[\"a\uFFFD\"]"), []string{bad}), `the text "a\xff" is not UTF-8`)
	require.NoError(t, checkText([]byte("[\"a\uFFFD\"]"), []string{"a\uFFFD"}))

	now := time.Now()
	_, body, err := EnqueueParams{Args: textArgs{
		embedded: embedded{"\uFFFD"}, Text: `\ufffd`, Raw: json.RawMessage(`"\ufffd"`), Secret: bad, hidden: bad, Time: &now, Code: "x",
	}}.Message(time.Now())
	require.NoError(t, err, "text that looks like it is none, or that is no part of the job")
	require.Equal(t, `\ufffd`, gjson.GetBytes(body, "args.0.text").String())
	require.Equal(t, "\uFFFD", gjson.GetBytes(body, "args.0.Inner").String())
}
