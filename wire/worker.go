package wire

import (
	"fmt"

	"github.com/tidwall/gjson"
)

// maxMetrics is how many metric records one message may hold.
const maxMetrics = 500

var (
	heartbeatMembers = set("type", "identity", "hostname", "pid", "tag", "concurrency", "busy", "beat", "rss_kb", "queues", "version",
		"started_at", "state", "labels", "rtt_us", "weights", "lanes", "work")
	metricMembers = set("type", "timestamp", "job_class", "queue", "duration_ms", "status", "worker_identity", "jid", "wait_ms",
		"attempt", "error_class")
	metricStatus = set("success", "failed", "dead", "discarded", "expired")
)

// CheckHeartbeat tells why a record of heartbeats is refused, or nil.
func CheckHeartbeat(body []byte) error {
	if err := checkRecord(body); err != nil {
		return err
	}
	o, err := parseObject(string(body), heartbeatMembers)
	if err != nil {
		return err
	}
	if o.has("type") && o["type"].String() != "heartbeat" {
		return fmt.Errorf("member \"type\" is not \"heartbeat\"")
	}
	identity, err := o.text("identity")
	if err != nil {
		return err
	}
	if identity == "" {
		return fmt.Errorf("member \"identity\" is missing")
	}
	if !o.has("beat") {
		return fmt.Errorf("member \"beat\" is missing")
	}
	_, err = o.time("beat")
	return err
}

// CheckMetrics tells why a message of job_metrics, one record or an array of them, is refused, or nil.
func CheckMetrics(body []byte) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	if begin(body) != '[' {
		return checkMetric(string(body))
	}
	n, err := 0, error(nil)
	gjson.ParseBytes(body).ForEach(func(_, m gjson.Result) bool {
		if n++; n > maxMetrics {
			err = fmt.Errorf("message has more than %d metric records", maxMetrics)
		} else if err = checkMetric(m.Raw); err != nil {
			err = fmt.Errorf("metric record %d: %w", n-1, err)
		}
		return err == nil
	})
	return err
}

func checkMetric(raw string) error {
	if !gjson.Parse(raw).IsObject() {
		return fmt.Errorf("metric record is not a JSON object")
	}
	o, err := parseObject(raw, metricMembers)
	if err != nil {
		return err
	}
	class, err := o.text("job_class")
	if err != nil {
		return err
	}
	if class == "" {
		return fmt.Errorf("member \"job_class\" is missing")
	}
	if !metricStatus[o["status"].String()] {
		return fmt.Errorf("member \"status\" must be success, failed, dead, discarded or expired")
	}
	if !o.has("timestamp") {
		return fmt.Errorf("member \"timestamp\" is missing")
	}
	_, err = o.time("timestamp")
	return err
}
