package wire

import (
	"fmt"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// maxMetrics is how many metric records one message may have.
const maxMetrics = 500

// MetricStatuses are the results that an attempt can have.
var MetricStatuses = []string{MetricSuccess, MetricFailed, MetricDead, MetricDiscarded, MetricExpired}

// Metric is a worker's report about one attempt.
type Metric struct {
	At         time.Time
	Class      string
	Queue      string
	Status     string
	Duration   time.Duration // negative if not reported
	Wait       time.Duration // negative if not reported
	Attempt    int64         // from 1; 0 if not reported
	JID        string
	Worker     string
	ErrorClass string
}

// BadMetric is a refused record of an array. The other records of the array count.
type BadMetric struct {
	Index int
	Raw   string
	Err   error
}

// CheckMetrics returns why a message of job_metrics, or the first bad record in it, is refused. It
// returns nil if nothing is.
func CheckMetrics(body []byte) error {
	_, bad, err := ParseMetrics(nil, body)
	if err == nil && len(bad) > 0 {
		err = bad[0].reason()
	}
	return err
}

func (b *BadMetric) reason() error { return fmt.Errorf("metric record %d: %w", b.Index, b.Err) }

// BadMetrics combines refused records into one rejected record. That is an array, so that the
// records can be corrected and sent again without the others.
func BadMetrics(bad []BadMetric) (body []byte, reason string) {
	raws := make([]string, len(bad))
	for i := range bad {
		raws[i] = bad[i].Raw
	}
	reason = bad[0].reason().Error()
	if len(bad) > 1 {
		reason = fmt.Sprintf("%s; and %d more", reason, len(bad)-1)
	}
	return []byte("[" + strings.Join(raws, ",") + "]"), reason
}

// ParseMetrics parses a message of job_metrics, one record or an array of up to 500, and appends
// the records to into. A bad record of an array is refused alone. An error means that the whole
// message is refused.
func ParseMetrics(into []Metric, body []byte) (good []Metric, bad []BadMetric, err error) {
	if err := shared.CheckJSON(body); err != nil {
		return into, nil, err
	}
	text := string(body)
	if shared.First(body) != '[' {
		m, err := parseMetric(text)
		if err != nil {
			return into, nil, err
		}
		return append(into, m), nil, nil
	}
	good, n := into, 0
	gjson.Parse(text).ForEach(func(_, item gjson.Result) bool {
		if n++; n > maxMetrics {
			return false
		}
		if m, err := parseMetric(item.Raw); err == nil {
			good = append(good, m)
		} else {
			bad = append(bad, BadMetric{n - 1, item.Raw, err})
		}
		return true
	})
	if n > maxMetrics {
		return into, nil, fmt.Errorf("message has more than %d metric records", maxMetrics)
	}
	return good, bad, nil
}

// Members of a metric record. They are looked up without a map, because there may be a hundred
// thousand records a second.
const (
	metricType = iota
	metricTimestamp
	metricClass
	metricQueue
	metricDuration
	metricStatus
	metricWorker
	metricJID
	metricWait
	metricAttempt
	metricError
	metricMembers
)

var metricNames = [metricMembers]string{"type", "timestamp", "job_class", "queue", "duration_ms", "status", "worker_identity", "jid", "wait_ms",
	"attempt", "error_class"}

func metricMember(name string) int {
	for i := range metricNames {
		if metricNames[i] == name {
			return i
		}
	}
	return -1
}

type metricFields [metricMembers]gjson.Result

func readMetric(raw string) (f metricFields, err error) {
	gjson.Parse(raw).ForEach(func(key, value gjson.Result) bool {
		i := metricMember(key.Str)
		switch {
		case i < 0:
			return true
		case len(key.Raw) != len(key.Str)+2:
			err = fmt.Errorf("member %q is written with escapes: write it plainly", metricNames[i])
		case f[i].Raw != "":
			err = fmt.Errorf("member %q appears twice", metricNames[i])
		}
		f[i] = value
		return err == nil
	})
	return f, err
}

func parseMetric(raw string) (m Metric, err error) {
	if strings.TrimLeft(raw, " \t\r\n")[0] != '{' {
		return m, fmt.Errorf("metric record is not a JSON object")
	}
	f, err := readMetric(raw)
	if err != nil {
		return m, err
	}
	if m.Class, err = f.text(metricClass); err != nil {
		return m, err
	}
	if m.Class == "" {
		return m, fmt.Errorf("member \"job_class\" is missing")
	}
	if m.Status = metricStatusOf(f[metricStatus]); m.Status == "" {
		return m, fmt.Errorf("member \"status\" must be success, failed, dead, discarded or expired")
	}
	if f[metricTimestamp].Type == gjson.Null {
		return m, fmt.Errorf("member \"timestamp\" is missing")
	}
	if m.At, err = shared.ParseTime("timestamp", f[metricTimestamp]); err != nil {
		return m, err
	}
	return m, m.readRest(&f)
}

func (m *Metric) readRest(f *metricFields) (err error) {
	if m.Queue, err = f.text(metricQueue); err != nil {
		return err
	}
	if m.Queue == "" {
		m.Queue = DefaultQueue
	}
	if m.Duration, err = f.millis(metricDuration); err != nil {
		return err
	}
	if m.Wait, err = f.millis(metricWait); err != nil {
		return err
	}
	if m.Attempt, err = f.count(metricAttempt); err != nil {
		return err
	}
	var cut bool
	m.ErrorClass, m.Worker, m.JID = shown(f[metricError], &cut), shown(f[metricWorker], &cut), shown(f[metricJID], &cut)
	return nil
}

func metricStatusOf(v gjson.Result) string {
	if v.Type != gjson.String {
		return ""
	}
	switch v.Str {
	case MetricSuccess, MetricFailed, MetricDead, MetricDiscarded, MetricExpired:
		return v.Str
	}
	return ""
}

func (f *metricFields) text(i int) (string, error) {
	if f[i].Type == gjson.Null {
		return "", nil
	}
	return shared.TextOf(metricNames[i], f[i])
}

// maxMillis is thirty years. A longer time is an error.
const maxMillis = 1e12

// millis returns a duration in milliseconds, or -1 if there is none. It returns 0 for a negative
// one, which comes from a clock that was set back.
func (f *metricFields) millis(i int) (time.Duration, error) {
	v := &f[i]
	switch {
	case v.Type == gjson.Null:
		return -1, nil
	case v.Type != gjson.Number || v.Num > maxMillis:
		return 0, fmt.Errorf("member %q must be a number of milliseconds, at most %.0f", metricNames[i], float64(maxMillis))
	}
	return time.Duration(max(0, v.Num) * float64(time.Millisecond)), nil
}

func (f *metricFields) count(i int) (int64, error) {
	v := &f[i]
	if v.Type == gjson.Null {
		return 0, nil
	}
	if v.Type != gjson.Number || v.Num < 0 || v.Num > maxWhole || v.Num != float64(int64(v.Num)) {
		return 0, fmt.Errorf("member %q must be a whole number from 0", metricNames[i])
	}
	return int64(v.Num), nil
}
