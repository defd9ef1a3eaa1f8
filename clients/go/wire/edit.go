package wire

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// SetRaw sets one member of an object and leaves every other byte alone.
func SetRaw(raw []byte, name, value string) ([]byte, error) {
	out, err := sjson.SetRawBytesOptions(raw, name, []byte(value), &sjson.Options{Optimistic: false})
	if err != nil {
		return nil, fmt.Errorf("wire: set %s: %w", name, err)
	}
	return out, nil
}

// MaxShort is the longest AMQP short string.
const MaxShort = 255

// Property is s if it may stand in a message property, else "". RabbitMQ 4.3 closes the connection over the type "amqp-1.0".
func Property(s string) string {
	if len(s) > MaxShort || !utf8.ValidString(s) || s == "amqp-1.0" {
		return ""
	}
	return s
}

// Traceparent is v if it is a traceparent that may be passed on, else "".
func Traceparent(v any) string {
	s, ok := v.(string)
	if !ok || len(s) > MaxShort || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return s
}

// WithQueue is a job with its queue filled in, if it names none: otherwise what comes back would go to the default queue.
func WithQueue(job []byte, queue string) ([]byte, error) {
	o, err := ParseObject(string(job), JobMembers)
	if err != nil {
		return nil, err
	}
	if o.Has("queue") || CheckQueueName(queue) != nil {
		return job, nil
	}
	return SetRaw(job, "queue", Quote(queue))
}

// Quote writes a text as a JSON string.
func Quote(s string) string { return string(gjson.AppendJSONString(nil, s)) }

// FirstBytes cuts a text behind its first n bytes, between characters.
func FirstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
