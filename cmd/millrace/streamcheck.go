package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	nativeStreams = "native" // the name of the transport

	// streamChecks is how often in a row another journal must be found before it is believed: retention takes records away, and a node
	// may learn of a new stream a moment later.
	streamChecks     = 4
	streamCheckEvery = 500 * time.Millisecond

	// streamCheckWithin bounds how long a start waits for the comparison. Where it cannot be made, as on a node without a replica, the
	// listener is used.
	streamCheckWithin = 10 * time.Second

	// firstRecordWithin is how long a stream that has records takes to show one over AMQP. One without shows that by silence.
	firstRecordWithin = time.Second
)

// useStreams has streams read, from the stream listener only if it belongs to the broker that AMQP reaches. The journal exists by now.
func (s *sidecar) useStreams(ctx context.Context, found *reached) error {
	transport := found.transport
	err := s.checkStreams(ctx, found)
	switch {
	case ctx.Err() != nil:
		_ = transport.Close()
		return nil
	case err == nil:
	case s.cfg.StreamURL != "":
		_ = transport.Close()
		return &hopelessError{err: err, remedy: streamRemedy}
	default:
		s.log.Warn("millrace: the stream listener that the management API names is another broker's, and is not used; --stream-url says where "+
			"this broker's is", "error", err)
		_ = transport.Close()
		if transport, err = awaitAMQPStreams(ctx, &s.cfg, s.hosts); err != nil {
			return nil // ctx has ended
		}
	}
	s.log.Info("millrace: streams are read", "protocol", transport.Name())
	s.source.use(transport)
	return nil
}

const streamRemedy = "set --stream-url to the stream listener of the broker at --amqp-url"

// checkStreams returns an error that names both if the stream listener is another broker's.
func (s *sidecar) checkStreams(ctx context.Context, found *reached) error {
	if found.transport.Name() != nativeStreams {
		return nil
	}
	amqp, err := awaitAMQPStreams(ctx, &s.cfg, s.hosts)
	if err != nil {
		return err
	}
	defer amqp.Close()
	return otherStreams(awaitSameJournal(ctx, found.transport, amqp), found.streams, s.cfg.AMQPURL)
}

// otherStreams says what two URLs are of two brokers.
func otherStreams(err error, stream, amqp string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the stream listener at %s belongs to another broker than AMQP at %s: %w", broker.MaskURL(stream), broker.MaskURL(amqp), err)
}

// openAMQPStreams opens what reads streams over AMQP alone.
func openAMQPStreams(ctx context.Context, cfg *sidecarSettings, amqp *hosts.Order) (streams.Transport, error) {
	return streams.Open(ctx, streams.Config{AMQPURL: cfg.AMQPURL, Hosts: amqp, Name: connectionName})
}

// awaitAMQPStreams is openAMQPStreams that tries until ctx ends.
func awaitAMQPStreams(ctx context.Context, cfg *sidecarSettings, amqp *hosts.Order) (streams.Transport, error) {
	for {
		t, err := openAMQPStreams(ctx, cfg, amqp)
		if err == nil {
			return t, nil
		}
		if err := pause.For(ctx, streamCheckEvery); err != nil {
			return nil, err
		}
	}
}

// errOtherJournal says that a stream listener is another broker's.
var errOtherJournal = errors.New("their streams " + wire.Journal + " differ")

// awaitSameJournal compares the journals until it is certain whether they are the same, for a few seconds at most. A transport that gives
// the native protocol up is not asked any more.
func awaitSameJournal(ctx context.Context, transport, amqp streams.Transport) error {
	ctx, cancel := context.WithTimeout(ctx, streamCheckWithin)
	defer cancel()
	others := 0
	for transport.Name() == nativeStreams {
		err := sameJournal(ctx, transport, amqp)
		switch {
		case err == nil, errors.Is(err, streams.ErrRefused): // the view says who may not read it
			return nil
		case !errors.Is(err, errOtherJournal):
			others = 0
		default:
			others++
		}
		if others == streamChecks {
			return err
		}
		if pause.For(ctx, streamCheckEvery) != nil {
			return nil
		}
	}
	return nil
}

// mayTrust returns an error if the native protocol is another broker's, as far as that can be said.
func mayTrust(ctx context.Context, native, amqp streams.Transport) error {
	if err := sameJournal(ctx, native, amqp); errors.Is(err, errOtherJournal) {
		return err
	}
	return nil
}

// sameJournal compares the oldest record of the journal over AMQP with the one that has its offset natively. Every journal begins with
// the record of a leader of its own. Two empty ones count as the same.
func sameJournal(ctx context.Context, native, amqp streams.Transport) error {
	_, has, err := native.Last(ctx, wire.Journal)
	switch {
	case errors.Is(err, streams.ErrNoStream): // the broker that AMQP reaches has one
		return errOtherJournal
	case err != nil:
		return err
	}
	asking, cancel := context.WithTimeout(ctx, firstRecordWithin)
	defer cancel()
	first, found, err := amqp.First(asking, wire.Journal)
	switch {
	case asking.Err() != nil && ctx.Err() == nil: // there is none
		found = false
	case err != nil:
		return err
	}
	switch {
	case found != has:
		return errOtherJournal
	case !found:
		return nil
	}
	want, err := amqp.Fetch(ctx, wire.Journal, first)
	if err != nil {
		return err
	}
	got, err := native.Fetch(ctx, wire.Journal, first)
	switch {
	case errors.Is(err, streams.ErrNoStream):
		return errOtherJournal
	case err != nil: // also where a replica has forgotten more than another
		return err
	case want.Fault != "" || got.Fault != "":
		return fmt.Errorf("the oldest record of %s cannot be read", wire.Journal)
	case !bytes.Equal(got.Body, want.Body):
		return errOtherJournal
	}
	return nil
}
