package wire

import (
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// MaxShort is the length in bytes of the longest AMQP short string.
const MaxShort = 255

// Property returns s if a message property may hold it, and "" otherwise. RabbitMQ 4.3 closes the
// connection over the type "amqp-1.0".
func Property(s string) string {
	if len(s) > MaxShort || !utf8.ValidString(s) || s == "amqp-1.0" {
		return ""
	}
	return s
}

// Traceparent returns v if it is a traceparent that may be passed on, and "" otherwise.
func Traceparent(v any) string {
	s, _ := v.(string)
	if !FitsHeader(s) {
		return ""
	}
	return s
}

// FitsHeader reports whether a header can hold a text: at most 255 bytes of printable ASCII.
func FitsHeader(s string) bool {
	return len(s) <= MaxShort && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}

// Quote returns a text as a JSON string.
func Quote(s string) string { return string(gjson.AppendJSONString(nil, s)) }

// FirstBytes returns at most the first n bytes of a text, cut between characters.
func FirstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
