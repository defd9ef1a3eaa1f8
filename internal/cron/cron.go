package cron

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Expression is a parsed cron expression. The zero value matches nothing.
type Expression struct {
	minute, hour, day, month, weekday uint64 // bit n is set if the field matches n

	anyDay, anyWeekday bool // the field begins with *
	fixed              bool // neither minute nor hour begins with *: see Next
}

// field is one of the five fields.
type field struct {
	name     string
	min, max int
	names    []string // of the values from min on
}

var fields = [5]field{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

var nicknames = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

var errNever = errors.New("it never matches: no month that it names has such a day")

// Parse parses an expression of five fields, or a nickname such as @daily.
func Parse(text string) (Expression, error) {
	e, err := parse(text)
	if err != nil {
		return Expression{}, fmt.Errorf("cron expression %q: %w", text, err)
	}
	return e, nil
}

func parse(text string) (e Expression, err error) {
	if strings.HasPrefix(text, "@") {
		full, known := nicknames[strings.ToLower(text)]
		if !known {
			return e, errors.New("the nickname is not known: use @hourly, @daily, @weekly, @monthly or @yearly")
		}
		text = full
	}
	parts := strings.Fields(text)
	if len(parts) != len(fields) {
		return e, fmt.Errorf("it has %d fields, not 5: minute, hour, day of month, month, day of week", len(parts))
	}
	for i, into := range []*uint64{&e.minute, &e.hour, &e.day, &e.month, &e.weekday} {
		if *into, err = fields[i].parse(parts[i]); err != nil {
			return e, fmt.Errorf("%s %q: %w", fields[i].name, parts[i], err)
		}
	}
	star := func(i int) bool { return strings.HasPrefix(parts[i], "*") }
	e.anyDay, e.anyWeekday, e.fixed = star(2), star(4), !star(0) && !star(1)
	if e.weekday&(1<<7) != 0 { // Sunday is 0 and 7
		e.weekday |= 1
	}
	if _, ok := e.after(civil{year: 2000, month: 1, day: 1}); !ok {
		return e, errNever
	}
	return e, nil
}

// parse parses a list of values, ranges and steps.
func (f *field) parse(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		of, every, stepped := strings.Cut(part, "/")
		from, to, step := f.min, f.max, 1
		if f.max == 7 {
			to = 6
		}
		if of != "*" {
			if from, to, err = f.span(of); err != nil {
				return 0, err
			}
			if stepped && !strings.Contains(of, "-") {
				return 0, fmt.Errorf("a step needs a range: write %s-%d/%s", of, f.max, every)
			}
		}
		if stepped {
			if step, err = strconv.Atoi(every); err != nil || step < 1 || step > f.max {
				return 0, fmt.Errorf("the step must be a number from 1 to %d", f.max)
			}
		}
		for n := from; n <= to; n += step {
			set |= 1 << n
		}
	}
	return set, nil
}

// span parses a value or a range.
func (f *field) span(text string) (from, to int, err error) {
	first, last, isRange := strings.Cut(text, "-")
	if from, err = f.value(first); err != nil {
		return 0, 0, err
	}
	if !isRange {
		return from, from, nil
	}
	if to, err = f.value(last); err != nil {
		return 0, 0, err
	}
	if to == 0 && from > 0 && f.max == 7 { // fri-sun
		to = 7
	}
	if from > to {
		return 0, 0, fmt.Errorf("the range ends before it begins")
	}
	return from, to, nil
}

func (f *field) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.min || n > f.max || strings.HasPrefix(text, "+") {
		return 0, fmt.Errorf("%q is not a number from %d to %d%s", text, f.min, f.max, f.orNames())
	}
	return n, nil
}

func (f *field) orNames() string {
	if f.names == nil {
		return ""
	}
	return fmt.Sprintf(" or a name from %s to %s", f.names[0], f.names[len(f.names)-1])
}

// civil is a local time, to the minute.
type civil struct {
	year              int
	month             time.Month
	day, hour, minute int
}

func civilOf(t time.Time) civil {
	year, month, day := t.Date()
	return civil{year, month, day, t.Hour(), t.Minute()}
}

func (c civil) utc() time.Time {
	return time.Date(c.year, c.month, c.day, c.hour, c.minute, 0, 0, time.UTC)
}

// years is how far after looks: a 29th of February that is a Monday may be 40 years away.
const years = 41

// after returns the first matching local time that is not before c.
func (e *Expression) after(c civil) (civil, bool) {
	for last := c.year + years; c.year <= last; {
		switch {
		case e.month&(1<<c.month) == 0:
			c = civil{year: c.year, month: c.month + 1, day: 1}
			if c.month > time.December {
				c = civil{year: c.year + 1, month: time.January, day: 1}
			}
		case !e.onDay(c):
			c = nextDay(c)
		default:
			if hour, minute, ok := e.inDay(c.hour, c.minute); ok {
				c.hour, c.minute = hour, minute
				return c, true
			}
			c = nextDay(c)
		}
	}
	return c, false
}

func nextDay(c civil) civil {
	year, month, day := time.Date(c.year, c.month, c.day+1, 0, 0, 0, 0, time.UTC).Date()
	return civil{year: year, month: month, day: day}
}

// onDay reports whether a day matches. If both fields name days, one of them is enough.
func (e *Expression) onDay(c civil) bool {
	weekday := time.Date(c.year, c.month, c.day, 0, 0, 0, 0, time.UTC).Weekday()
	byDay, byWeekday := e.day&(1<<c.day) != 0, e.weekday&(1<<weekday) != 0
	if e.anyDay || e.anyWeekday {
		return byDay && byWeekday
	}
	return byDay || byWeekday
}

// inDay returns the first matching hour and minute of a day that are not before these.
func (e *Expression) inDay(hour, minute int) (int, int, bool) {
	if e.hour&(1<<hour) != 0 {
		if m := firstFrom(e.minute, minute); m < 60 {
			return hour, m, true
		}
	}
	hour = firstFrom(e.hour, hour+1)
	return hour, firstFrom(e.minute, 0), hour < 24
}

// firstFrom returns the lowest bit of a set that is not below n, 64 if there is none.
func firstFrom(set uint64, n int) int { return bits.TrailingZeros64(set >> n << n) }
