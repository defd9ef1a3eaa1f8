package broker

import (
	"strconv"
	"time"
)

// Retention is when a stream deletes its records. Zero means never.
type Retention struct {
	Age   time.Duration
	Bytes int64
}

// Retention returns the retention of a stream that results from its policies and arguments.
func (q QueueInfo) Retention() Retention {
	r := Retention{Bytes: q.MaxLengthBytes}
	for _, said := range []any{q.Definition["max-age"], q.Arguments["x-max-age"]} {
		text, _ := said.(string)
		if age := parseAge(text); age > 0 && (r.Age == 0 || age < r.Age) {
			r.Age = age
		}
	}
	return r
}

// parseAge parses a duration as RabbitMQ writes it: a number and one of Y, M, D, h, m, s.
func parseAge(text string) time.Duration {
	if len(text) < 2 {
		return 0
	}
	day := 24 * time.Hour
	units := map[byte]time.Duration{'Y': 365 * day, 'M': 30 * day, 'D': day, 'h': time.Hour, 'm': time.Minute, 's': time.Second}
	n, err := strconv.Atoi(text[:len(text)-1])
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(n) * units[text[len(text)-1]]
}
