package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// streams looks at how streams can be read.
func (e *examination) streams(ctx context.Context) {
	transport, address, err := openTransport(ctx, e.cfg, &e.hosts, e.mgmt, quiet())
	if err != nil {
		e.note(broken, "streams", err.Error(), "check --stream-url, and the broker's log")
		return
	}
	defer transport.Close()
	if e.isOtherJournal(ctx, transport) {
		g := advice // a sidecar reads over AMQP instead
		if e.cfg.StreamURL != "" {
			g = broken
		}
		e.note(g, "streams", otherStreams(errOtherJournal, address, e.cfg.AMQPURL).Error(), streamRemedy)
		return
	}
	switch {
	case transport.Name() == nativeStreams:
		e.note(fine, "streams", "are read with the native stream protocol", "")
	case e.conn.Features().NativeStreamProtocol:
		remedy := "rabbitmq-plugins enable rabbitmq_stream"
		switch {
		case e.cfg.StreamURL != "":
			remedy = "check --stream-url, or " + remedy
		case e.mgmt == nil: // it may well be enabled
			remedy = "the management API, which names the stream listeners, cannot be asked: see above, or set --stream-url"
		case e.cfg.amqp().Scheme == "amqps":
			remedy = "set --stream-url to rabbitmq-stream+tls://host:port"
		}
		e.note(advice, "streams", "are read over AMQP 0-9-1: slower, and records that only native clients can read are skipped", remedy)
	default:
		e.note(fine, "streams", "are read over AMQP 0-9-1, the one protocol that "+e.conn.Product()+" has for them", "")
	}
	e.delay(ctx, transport)
}

// isOtherJournal reports whether the stream listener is another broker's. Before there is a journal, nothing shows that.
func (e *examination) isOtherJournal(ctx context.Context, transport streams.Transport) bool {
	if exists, err := e.conn.QueueExists(ctx, wire.Journal); err != nil || !exists {
		return false
	}
	amqp, err := openAMQPStreams(ctx, e.cfg, &e.hosts)
	if err != nil {
		return false
	}
	defer amqp.Close()
	return errors.Is(awaitSameJournal(ctx, transport, amqp), errOtherJournal)
}

const (
	slowFetch   = 20 * time.Millisecond
	fetchProbes = 5
)

// delay measures how long one small record takes. A LavinMQ that leaves Nagle's algorithm on holds it back for 40 ms.
func (e *examination) delay(ctx context.Context, transport streams.Transport) {
	took, err := fetchTime(ctx, transport)
	switch {
	case err != nil:
		e.note(advice, "latency", "not measured, as there is no journal to read yet", "start a sidecar first")
	case took > slowFetch && e.conn.Features().HoldsSmallFramesBack:
		e.note(broken, "latency", fmt.Sprintf("one record takes %s: %s waits for more before it sends", took.Round(time.Millisecond), e.conn.Product()),
			"set tcp_nodelay = true in the section [main] of lavinmq.ini, and restart it")
	default:
		e.note(fine, "latency", fmt.Sprintf("one record takes %s", took.Round(100*time.Microsecond)), "")
	}
}

// fetchTime is the median time that the journal's newest record takes to come.
func fetchTime(ctx context.Context, transport streams.Transport) (time.Duration, error) {
	last, ok, err := transport.Last(ctx, wire.Journal)
	if err != nil {
		return 0, err
	}
	if !ok {
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

// sidecar asks a running sidecar how it is.
func (e *examination) sidecar(ctx context.Context) {
	api := e.cfg.client(e.signIn)
	o, err := api.overview(ctx)
	if err != nil {
		text := err.Error()
		if !strings.Contains(text, api.base) {
			text += " (" + api.base + ": it may be the sidecar of another broker or virtual host)"
		}
		e.note(advice, "sidecar", text, "")
		return
	}
	e.note(fine, "sidecar", fmt.Sprintf("runs at %s for virtual host %s: %s", api.base, o.VHost, o.Scheduler.Phase), "")
	for _, t := range o.Scheduler.troubles() {
		e.note(broken, t.subject, t.text, t.remedy)
	}
}
