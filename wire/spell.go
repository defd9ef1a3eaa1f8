package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// Spellings returns the forms in which a JSON record may contain a text, in lower case: plain, with
// the escapes that JSON requires, with those that Go adds for HTML, and with everything beyond
// ASCII escaped, as Python does.
func Spellings(text string) [][]byte {
	var all [][]byte
	add := func(s []byte) {
		s = LowerASCII(bytes.Clone(s))
		if !slices.ContainsFunc(all, func(o []byte) bool { return bytes.Equal(o, s) }) {
			all = append(all, s)
		}
	}
	add([]byte(text))
	for _, html := range []bool{false, true} {
		escaped := escape(text, html)
		add(escaped)
		add(escapeBeyondASCII(escaped))
	}
	return all
}

// TextOf returns the text of a JSON string as encoding/json reads it. gjson reads halves of
// surrogate pairs, and bytes that are not UTF-8, in another way.
func TextOf(v gjson.Result) string {
	if strings.IndexByte(v.Raw, '\\') < 0 && utf8.ValidString(v.Str) {
		return v.Str
	}
	var text string
	if json.Unmarshal([]byte(v.Raw), &text) != nil {
		return v.Str
	}
	return text
}

// escape returns a text as a JSON string, without the quotes.
func escape(text string, html bool) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if err := e.Encode(text); err != nil { // a string can always be encoded
		panic(err)
	}
	return b.Bytes()[1 : b.Len()-len("\"\n")]
}

func escapeBeyondASCII(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// LowerASCII changes the ASCII letters of b to lower case, in place.
func LowerASCII(b []byte) []byte {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return b
}

// Counted returns a number with its noun: "1 job", "2 jobs".
func Counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
