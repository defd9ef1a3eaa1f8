package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// openStreams finds out how streams can be read.
func (e *examination) openStreams(ctx context.Context) error {
	b := e.cfg.Broker
	b.SlowAcks = true // workers have no faster ones: see latency
	transport, address, err := b.OpenStreams(ctx, e.mgmt)
	if err != nil {
		e.report(failure, err.Error(), "check --stream-url, and the broker's log")
		return nil
	}
	if err := b.FindOtherJournal(ctx, e.conn, transport, address); err != nil {
		_ = transport.Close()
		s := note // a sidecar reads over AMQP instead
		if b.StreamURL != "" {
			s = failure
		}
		e.report(s, err.Error(), connect.StreamRemedy)
		return nil
	}
	e.streams = transport
	switch {
	case transport.Name() == connect.Native:
		e.report(ok, "are read with the native stream protocol", "")
	case e.conn.Features().NativeStreamProtocol:
		e.findings = append(e.findings, overAMQP(e.clustered, e.nativeRemedy()))
	default:
		e.report(ok, "are read over AMQP 0-9-1, the one protocol that "+e.conn.Product()+" has for them", "")
	}
	return nil
}

// overAMQP is what it means that streams are not read with the native protocol, which the broker
// has. In a cluster, only that protocol asks a stream's leader where the stream ends.
func overAMQP(clustered bool, remedy string) finding {
	if clustered {
		return finding{failure, "streams", "are read over AMQP 0-9-1: in a cluster, a sidecar does not notice then that the node it reads from gets no new records", remedy}
	}
	return finding{note, "streams", "are read over AMQP 0-9-1: slower, and records that only native clients can read are skipped", remedy}
}

// nativeRemedy says how to have streams read with the native protocol.
func (e *examination) nativeRemedy() string {
	const enable = "rabbitmq-plugins enable rabbitmq_stream"
	switch {
	case e.cfg.Broker.StreamURL != "":
		return "check --stream-url, or " + enable
	case e.mgmt == nil: // it may well be enabled
		return "the management API, which names the stream listeners, cannot be asked: see above, or set --stream-url"
	case strings.HasPrefix(e.cfg.Broker.AMQPURL, "amqps:"):
		return "set --stream-url to rabbitmq-stream+tls://host:port"
	}
	return enable
}

const (
	slowFetch   = 20 * time.Millisecond
	fetchProbes = 5
)

// latency measures how long one small record takes. A LavinMQ that leaves Nagle's algorithm on
// delays it by 40 ms.
func (e *examination) latency(ctx context.Context) error {
	took, err := fetchTime(ctx, e.streams)
	switch {
	case err != nil:
		e.report(note, "not measured, as there is no journal to read yet", "start a sidecar first")
	case took > slowFetch && e.conn.Features().HoldsSmallFramesBack:
		e.report(failure, fmt.Sprintf("one record takes %s: %s waits for more before it sends", took.Round(time.Millisecond), e.conn.Product()),
			"set tcp_nodelay = true in the section [main] of lavinmq.ini, and restart it")
	default:
		e.report(ok, fmt.Sprintf("one record takes %s", took.Round(100*time.Microsecond)), "")
	}
	return nil
}

// fetchTime returns the median time that it takes to fetch the journal's newest record.
func fetchTime(ctx context.Context, transport streams.Transport) (time.Duration, error) {
	last, found, err := transport.Last(ctx, wire.Journal)
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, streams.ErrNotFound
	}
	took := make([]time.Duration, fetchProbes)
	for i := range took {
		begun := time.Now()
		if _, err := transport.Fetch(ctx, wire.Journal, last); err != nil {
			return 0, err
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	return took[fetchProbes/2], nil
}

// sidecar asks a running sidecar what keeps it from dispatching jobs.
func (e *examination) sidecar(ctx context.Context) error {
	base := e.cfg.API.Address()
	o, err := e.cfg.API.Overview(ctx)
	if err != nil {
		text := err.Error()
		if !strings.Contains(text, base) {
			text += " (" + base + ": it may be the sidecar of another broker or virtual host)"
		}
		e.report(note, text, "")
		return nil
	}
	e.report(ok, fmt.Sprintf("runs at %s for virtual host %s: %s", base, o.VHost, o.Scheduler.Phase), "")
	for _, t := range apiclient.Troubles(&o.Scheduler) {
		e.reportOn(t.Subject, failure, t.Text, t.Remedy)
	}
	return errors.Join(e.periodicJobs(ctx), e.limits(ctx), e.governed(ctx))
}
