package httpapi

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// secretless reports whether every member whose name matches is masked.
func secretless(names *regexp.Regexp, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if names.MatchString(name) && value != "[hidden]" || !secretless(names, value) {
				return false
			}
		}
	case []any:
		for _, value := range v {
			if !secretless(names, value) {
				return false
			}
		}
	}
	return true
}

// A name counts as browsers and encoding/json read it, with or without escapes.
func TestHiddenNamesMayBeEscaped(t *testing.T) {
	names, err := ParseHideArgs(DefaultHideArgs)
	require.NoError(t, err)
	h := &redactor{names}
	for _, name := range []string{
		`password`, `pass\u0077ord`, `\u0070\u0061\u0073\u0073\u0077\u006f\u0072\u0064`, `PASS\u0057ORD`, `api\u002dkey`, `a\/b\"token\n`,
		`\ud800\u0070assword`, `\udc00\u0070assword`, `\ud800\ud800\u0070assword`, `\ud83d\ude00\u0070assword`, `my\ud800password`, `password\ud800`, "\xffpassword",
	} {
		for before, after := range map[string]string{`{"`: `}`, `{"job":{"args":[1,{"a":[{"`: `}]}]}}`} {
			shown, hid := h.record([]byte(before + name + `":"x"` + after))
			require.True(t, hid, name)
			require.Equal(t, before+name+`":"[hidden]"`+after, string(shown))
		}
	}
	for _, name := range []string{`pass`, `pass\\u0077ord`, `\ud800\u0070ass`} {
		raw := `{"` + name + `":"x"}`
		shown, hid := h.record([]byte(raw))
		require.False(t, hid, name)
		require.Equal(t, raw, string(shown))
	}
}

func FuzzHidden(f *testing.F) {
	for _, seed := range []string{
		`{"job":{"args":[{"password":"x"},{"a":{"token":[1,2]}}]}}`, ` { "secret" : 1 } `, `[{"pass\u0077ord":"x"}]`, `{"a":"\"password\":1"}`, `"password"`, `null`,
		`{"secret":{"secret":1},"secret":2}`, `{"token":}`, "\n[[[{\"TOKEN\":null}]]]", `{"a":1e400,"cookie":"é\ud800"}`, `{"\ud800\u0070assword":1}`,
	} {
		f.Add([]byte(seed))
	}
	names, err := ParseHideArgs(DefaultHideArgs)
	require.NoError(f, err)
	h := &redactor{names}
	f.Fuzz(func(t *testing.T, raw []byte) {
		shown, hid := h.anything(raw)
		if !json.Valid(raw) {
			require.True(t, hid)
			require.Empty(t, shown)
			return
		}
		require.True(t, json.Valid(shown), "%s", shown)
		require.True(t, hid || bytes.Equal(raw, shown))
		d := json.NewDecoder(bytes.NewReader(shown))
		d.UseNumber()
		var v any
		require.NoError(t, d.Decode(&v))
		require.True(t, secretless(names, v), "%s", shown)
		again, _ := h.record(shown)
		require.Equal(t, string(shown), string(again))
	})
}
