package millrace

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// obeying returns a worker that has obeyed messages, without a broker.
func obeying(cfg WorkerConfig, messages gjson.Result) *Worker {
	cfg.Logger = slog.New(slog.DiscardHandler)
	w := NewWorker(cfg)
	for _, message := range texts(messages) {
		w.obey([]byte(strings.ReplaceAll(message, "IDENTITY", w.identity)))
	}
	return w
}

func TestVectorsControl(t *testing.T) {
	vectors(t, "control.json", func(t *testing.T, c gjson.Result) {
		w := obeying(WorkerConfig{Queues: []string{"a", "b"}}, c.Get("messages"))
		require.Equal(t, c.Get("state").String(), w.state())
		require.ElementsMatch(t, texts(c.Get("paused")), slices.Collect(maps.Keys(w.paused)))
	})
}

func TestVectorsHeartbeat(t *testing.T) {
	vectors(t, "heartbeat.json", func(t *testing.T, c gjson.Result) {
		b := obeying(vectorWorker(t, c.Get("worker")), c.Get("messages")).describe()
		b.RTT = c.Get("rtt_us").Int()
		text, err := json.Marshal(b)
		require.NoError(t, err)
		var got map[string]any
		require.NoError(t, json.Unmarshal(text, &got))
		require.Equal(t, strings.NewReplacer("HOSTNAME", hostname(), "PID", strconv.Itoa(os.Getpid())).Replace(c.Get("identity").String()), b.Identity)
		require.LessOrEqual(t, b.StartedAt, b.Beat)
		for _, own := range []string{"identity", "hostname", "pid", "beat", "rss_kb", "started_at"} {
			require.Contains(t, got, own)
			delete(got, own)
		}
		require.Equal(t, c.Get("heartbeat").Value(), got)
	})
}

func vectorWorker(t *testing.T, settings gjson.Result) (cfg WorkerConfig) {
	t.Helper()
	queues := func(of gjson.Result) (strict []string, weights map[string]int) {
		if of.IsArray() {
			return texts(of), nil
		}
		require.NoError(t, json.Unmarshal([]byte(of.Raw), &weights))
		return nil, weights
	}
	if q := settings.Get("queues"); q.Exists() {
		cfg.Queues, cfg.Weights = queues(q)
	}
	for _, l := range settings.Get("lanes").Array() {
		lane := Lane{Name: l.Get("name").String(), Concurrency: int(l.Get("concurrency").Int())}
		lane.Queues, lane.Weights = queues(l.Get("queues"))
		cfg.Lanes = append(cfg.Lanes, lane)
	}
	if labels := settings.Get("labels"); labels.Exists() {
		require.NoError(t, json.Unmarshal([]byte(labels.Raw), &cfg.Labels))
	}
	cfg.Concurrency = int(settings.Get("concurrency").Int())
	cfg.Tag, cfg.Version = settings.Get("tag").String(), settings.Get("version").String()
	return cfg
}

func TestVectorsMetrics(t *testing.T) {
	vectors(t, "metrics.json", func(t *testing.T, c gjson.Result) {
		d := amqp.Delivery{Body: []byte(c.Get("delivery.body").String()), MessageId: c.Get("delivery.message_id").String()}
		if sent := c.Get("delivery.timestamp"); sent.Type == gjson.Number {
			d.Timestamp = time.Unix(sent.Int(), 0)
		}
		job, err := parseJob(&d, c.Get("delivery.queue").String())
		require.NoError(t, err)
		ended := clock(c.Get("ended").Float())
		m := newMetrics("me")
		m.add(job, ended.Add(-time.Duration(c.Get("took").Float()*float64(time.Second))), ended, outcome{status: "success"})
		text, err := json.Marshal(<-m.records)
		require.NoError(t, err)
		require.JSONEq(t, c.Get("metric").Raw, string(text))
	})
}
