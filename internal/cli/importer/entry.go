package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/millrace-jobs/millrace/internal/cli/fieldmap"
	"github.com/millrace-jobs/millrace/wire"
)

// State is where a job goes.
type State string

// States of jobs that can be entered.
const (
	Due       State = "due"
	Scheduled State = "scheduled"
	Retry     State = "retry"
	Dead      State = "dead"
)

// entry is a job as it is entered.
type entry struct {
	line              *line
	state             State
	jid, class, queue string
	body              []byte // a command to the leader, or a record of the stream
}

// stream returns the entry stream to which the record is published, or "" for a command.
func (e *entry) stream() string {
	switch e.state {
	case Retry:
		return wire.Retries
	case Dead:
		return wire.DeadJobs
	}
	return ""
}

// maxKeyed is the largest job that is entered under a key, which is a command of at most 1 MiB.
const maxKeyed = 1<<20 - 64<<10

// maker makes entries of lines.
type maker struct {
	name   string
	fields *fieldmap.Map // nil: the lines are jobs already
}

// NameForm is the form of the name of an import.
var NameForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// entry returns what a line enters, or why it is refused.
func (m *maker) entry(l *line) (*entry, error) {
	if l.tooLong() {
		return nil, fmt.Errorf("the line has more than %d bytes", longestLine)
	}
	if err := checkObject(l.text); err != nil {
		return nil, err
	}
	text := l.text
	if m.fields != nil {
		var err error
		if text, err = m.fields.Apply(text); err != nil {
			return nil, err
		}
	}
	e := &entry{line: l}
	top := gjson.ParseBytes(text)
	if job := top.Get("job"); job.IsObject() && !top.Get("class").Exists() {
		return e, m.record(e, text, top)
	}
	return e, m.job(e, text, top)
}

// checkObject says what is wrong with a line that is no JSON object.
func checkObject(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("it is not valid UTF-8: convert the file, for example with iconv")
	}
	if text[0] == '[' {
		return errors.New("a line is one object, and this one begins an array: write one object a line, for example with jq -c '.[]'")
	}
	var syntax *json.SyntaxError
	err := json.Unmarshal(text, new(json.RawMessage))
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("it is not valid JSON at character %d: %w", syntax.Offset, err)
	case err != nil:
		return fmt.Errorf("it is not valid JSON: %w", err)
	case text[0] != '{':
		return errors.New("it is no JSON object")
	}
	return nil
}

// given reports whether an object has a member that is not null.
func given(o gjson.Result, member string) bool { return o.Get(member).Type != gjson.Null }

// job makes an entry of a line that is a job. Members that say where the job goes are taken out.
func (m *maker) job(e *entry, text []byte, top gjson.Result) error {
	place, at, err := placeOf(top)
	if err != nil {
		return err
	}
	if args := top.Get("args"); given(top, "args") && !args.IsArray() {
		return fmt.Errorf("args is %s: it must be an array", wire.Shorten(args.Raw, 60))
	}
	e.state = place.state
	out := []string{"at", "retry_at", "died_at"}
	if e.stream() != "" {
		out = append(out, failureMembers...)
	}
	job, err := without(text, out)
	if err != nil {
		return err
	}
	if job, err = m.named(e, job, top.Get("jid")); err != nil {
		return err
	}
	if e.stream() == "" {
		return m.command(e, job, at)
	}
	record := fmt.Appendf(nil, `{"type":%s,"jid":%s,"%s":%s`, encode(place.record), encode(e.jid), place.member, secondsText(*at))
	for _, member := range append([]string{"retry_count"}, failureMembers...) {
		if given(top, member) {
			record = fmt.Appendf(record, `,%s:%s`, encode(member), top.Get(member).Raw)
		}
	}
	return m.publish(e, append(append(append(record, `,"job":`...), job...), '}'))
}

// failureMembers are in the record of a failed job, not in the job.
var failureMembers = []string{"failed_at", "error_class", "error_message", "backtrace"}

// place is where a job goes, and the member of a line that says so.
type place struct {
	state          State
	member, record string
}

var (
	due       = place{state: Due}
	scheduled = place{Scheduled, "at", "scheduled_job"}
	retry     = place{Retry, "retry_at", "retry"}
	dead      = place{Dead, "died_at", "dead_job"}
)

func placeOf(top gjson.Result) (found place, at *float64, err error) {
	found = due
	for _, p := range []place{scheduled, retry, dead} {
		if !given(top, p.member) {
			continue
		}
		if found.member != "" {
			return found, nil, fmt.Errorf("it has both %s and %s: a job is in one place", found.member, p.member)
		}
		found = p
		if at, err = timeOf(p.member, top.Get(p.member)); err != nil {
			return found, nil, err
		}
	}
	return found, at, nil
}

// timeOf reads seconds or milliseconds since 1970, or RFC 3339.
func timeOf(member string, v gjson.Result) (*float64, error) {
	if v.Type == gjson.String {
		at, err := time.Parse(time.RFC3339Nano, v.Str)
		if err != nil {
			return nil, fmt.Errorf("%s is %s: it must be seconds since 1970 or a time like 2026-12-24T18:00:00Z", member, wire.Shorten(v.Raw, 60))
		}
		return new(wire.Seconds(at)), nil
	}
	record := fmt.Sprintf(`{"scheduled_at":%s,"job":{"class":"C"}}`, v.Raw)
	e, err := wire.ParseEntry(wire.ScheduledJobs, 0, []byte(record))
	if err != nil {
		return nil, fmt.Errorf("%s is %s: it must be seconds since 1970, in the years 1 to 9999", member, wire.Shorten(v.Raw, 60))
	}
	return new(wire.Seconds(e.At)), nil
}

// without removes members, and leaves all other bytes unchanged.
func without(object []byte, members []string) ([]byte, error) {
	for _, member := range members {
		if !gjson.GetBytes(object, member).Exists() {
			continue
		}
		var err error
		if object, err = sjson.DeleteBytes(object, member); err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", member, err)
		}
		if gjson.GetBytes(object, member).Exists() {
			return nil, fmt.Errorf("%s appears twice", member)
		}
	}
	return object, nil
}

// named gives a job without a jid one that depends on the name of the import and on the line.
func (m *maker) named(e *entry, job []byte, jid gjson.Result) ([]byte, error) {
	if jid.Type == gjson.String && jid.Str != "" {
		e.jid = jid.Str
		return job, nil
	}
	if jid.Type != gjson.Null && jid.Raw != `""` {
		return nil, fmt.Errorf("jid is %s: it must be a text", wire.Shorten(jid.Raw, 60))
	}
	if e.jid == "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", m.name, e.line.number, e.line.text))
		e.jid = hex.EncodeToString(sum[:16])
	}
	if jid.Exists() {
		return sjson.SetRawBytes(job, "jid", encode(e.jid))
	}
	return prepend(job, fmt.Appendf(nil, `"jid":%s`, encode(e.jid))), nil
}

// prepend puts a member before those of an object.
func prepend(object, member []byte) []byte {
	out := append([]byte{'{'}, member...)
	if bytes.TrimSpace(object[1:])[0] == '}' {
		return append(out, object[1:]...)
	}
	return append(append(out, ','), object[1:]...)
}

// command makes the command that enters a job under its key.
func (m *maker) command(e *entry, job []byte, at *float64) error {
	if len(job) > maxKeyed {
		return fmt.Errorf("the job has %d bytes: a job that is due or scheduled has at most %d, so keep large data elsewhere", len(job), maxKeyed)
	}
	_, checked, err := wire.Command{Job: job, At: at}.Entry(time.Unix(0, 0), e.jid)
	if err != nil {
		return reasonOf(err)
	}
	e.class, e.queue = checked.Job.Class, checked.Job.Queue
	e.body = fmt.Appendf(nil, `{"command":%s,"key":%s`, encode(wire.CommandEnqueue), encode(m.key(e.jid)))
	if at != nil {
		e.body = fmt.Appendf(e.body, `,"at":%s`, secondsText(*at))
	}
	e.body = append(append(append(e.body, `,"job":`...), job...), '}')
	_, err = wire.ParseCommand(e.body)
	return reasonOf(err)
}

// key returns the key under which the leader enters a job once.
func (m *maker) key(jid string) string {
	key := "import:" + m.name + ":" + jid
	if wire.ASCII(key) == key {
		return key
	}
	sum := sha256.Sum256([]byte(jid))
	return "import:" + m.name + ":sha256-" + hex.EncodeToString(sum[:16])
}

// publish takes the record of a retry or dead job.
func (m *maker) publish(e *entry, record []byte) error {
	checked, err := wire.ParseEntry(e.stream(), 0, record)
	if err != nil {
		return reasonOf(err)
	}
	e.class, e.queue, e.body = checked.Job.Class, checked.Job.Queue, record
	return nil
}

func secondsText(at float64) string { return strconv.FormatFloat(at, 'f', -1, 64) }

// encode returns a text as a JSON string.
func encode(text string) []byte { return gjson.AppendJSONString(nil, text) }
