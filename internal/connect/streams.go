package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/streams"
	"github.com/millrace-jobs/millrace/wire"
)

// Native is the name of the transport that speaks the native stream protocol.
const Native = "native"

const (
	// otherJournalChecks is how often in a row another journal must be found before it is believed.
	otherJournalChecks = 4
	streamCheckEvery   = 500 * time.Millisecond

	// streamCheckTimeout bounds how long a start waits for the comparison.
	streamCheckTimeout = 15 * time.Second

	// firstRecordTimeout is how long a stream that has records takes to show one over AMQP. Silence
	// is the only sign of a stream without records. An overloaded broker is silent for longer, so
	// each check that finds another journal makes the next one wait longer.
	firstRecordTimeout = time.Second

	// noRecordTimeout is the same where the stream listener says that its journal is empty. Every
	// start beside a new broker waits for it. If it is too short, the sidecar reads an empty
	// journal of another broker: its own first record never arrives there, so it never leads.
	noRecordTimeout = 250 * time.Millisecond
)

// StreamRemedy says what to do about a stream listener of another broker.
const StreamRemedy = "set --stream-url to the stream listener of the broker at --amqp-url"

// ErrOtherJournal is returned where a stream listener belongs to another broker.
var ErrOtherJournal = errors.New("their streams " + wire.Journal + " differ")

// OpenStreams chooses how streams are read. It also returns the URL of the stream listener, which
// is empty if none is known. mgmt may be nil.
func (b *Broker) OpenStreams(ctx context.Context, mgmt *broker.Management) (t streams.Transport, address string, err error) {
	if address, err = b.streamURL(ctx, mgmt); err != nil {
		b.Log.Warn("millrace: cannot ask for the broker's stream listeners; --stream-url says where they are", "error", err)
	}
	t, err = streams.Open(ctx, streams.Config{AMQPURL: b.AMQPURL, StreamURL: address, Hosts: b.Hosts, Name: Name, Log: b.Log, Trust: trust, SlowAcks: b.SlowAcks})
	return t, address, err
}

// streamURL returns where the native stream protocol is spoken, or nothing if that is not known.
func (b *Broker) streamURL(ctx context.Context, mgmt *broker.Management) (string, error) {
	if b.StreamURL != "" {
		return b.StreamURL, nil
	}
	amqp := b.amqp()
	if mgmt == nil || amqp.Scheme == "amqps" { // the listeners that it names have no TLS
		return "", nil
	}
	addresses, err := mgmt.StreamListeners(ctx)
	if err != nil || len(addresses) == 0 {
		return "", err
	}
	vhost := VHost(amqp)
	u := hosts.URL{Hosts: addresses, URL: url.URL{Scheme: "rabbitmq-stream", User: Userinfo(amqp), Path: "/" + vhost, RawPath: "/" + url.PathEscape(vhost)}}
	return u.String(), nil
}

func (b *Broker) openAMQPStreams(ctx context.Context) (streams.Transport, error) {
	return streams.Open(ctx, streams.Config{AMQPURL: b.AMQPURL, Hosts: b.Hosts, Name: Name})
}

// AwaitAMQPStreams returns a transport that reads streams over AMQP only. It tries until ctx ends.
func (b *Broker) AwaitAMQPStreams(ctx context.Context) (streams.Transport, error) {
	for {
		t, err := b.openAMQPStreams(ctx)
		if err == nil {
			return t, nil
		}
		if err := pause.For(ctx, streamCheckEvery); err != nil {
			return nil, err
		}
	}
}

// CheckListener returns an ErrOtherJournal that names both URLs if the stream listener belongs to
// another broker than AMQP.
func (b *Broker) CheckListener(ctx context.Context, native, amqp streams.Transport, address string) error {
	err := awaitSameJournal(ctx, native, amqp)
	if err == nil {
		return nil
	}
	return fmt.Errorf("the stream listener at %s belongs to another broker than AMQP at %s: %w", broker.MaskURL(address), broker.MaskURL(b.AMQPURL), err)
}

// FindOtherJournal is CheckListener for a broker that may have no journal yet, and where AMQP may
// be unreachable.
func (b *Broker) FindOtherJournal(ctx context.Context, conn *broker.Conn, native streams.Transport, address string) error {
	if exists, err := conn.Queues().Exists(ctx, wire.Journal); err != nil || !exists {
		return nil
	}
	amqp, err := b.openAMQPStreams(ctx)
	if err != nil {
		return nil
	}
	defer amqp.Close()
	return b.CheckListener(ctx, native, amqp, address)
}

// awaitSameJournal compares the journals for a few seconds until it is certain whether they are the
// same. It stops where the transport gives up the native protocol.
func awaitSameJournal(ctx context.Context, transport, amqp streams.Transport) error {
	ctx, cancel := context.WithTimeout(ctx, streamCheckTimeout)
	defer cancel()
	others := 0
	for transport.Name() == Native {
		err := sameJournal(ctx, transport, amqp, time.Duration(others+1)*firstRecordTimeout)
		switch {
		case err == nil, errors.Is(err, streams.ErrRefused): // the view reports what may not be read
			return nil
		case !errors.Is(err, ErrOtherJournal):
			others = 0
		default:
			others++
		}
		if others == otherJournalChecks {
			return err
		}
		if pause.For(ctx, streamCheckEvery) != nil {
			return nil
		}
	}
	return nil
}

// trust returns an error if the native protocol is known to be another broker's.
func trust(ctx context.Context, native, amqp streams.Transport) error {
	if err := sameJournal(ctx, native, amqp, firstRecordTimeout); errors.Is(err, ErrOtherJournal) {
		return err
	}
	return nil
}

// sameJournal compares the oldest record of the journal over AMQP with the record that has its
// offset natively. Every journal begins with a record of its own leader. Two empty journals count
// as the same, and a journal that shows no record over AMQP within a time counts as empty.
func sameJournal(ctx context.Context, native, amqp streams.Transport, within time.Duration) error {
	_, has, err := native.Last(ctx, wire.Journal)
	switch {
	case errors.Is(err, streams.ErrNoStream): // the broker that AMQP reaches has one
		return ErrOtherJournal
	case err != nil:
		return err
	}
	if !has {
		within = within / firstRecordTimeout * noRecordTimeout
	}
	asking, cancel := context.WithTimeout(ctx, within)
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
		return ErrOtherJournal
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
		return ErrOtherJournal
	case err != nil: // also where a replica has lost more to retention than another
		return err
	case want.Fault != "" || got.Fault != "":
		return fmt.Errorf("the oldest record of %s cannot be read", wire.Journal)
	case !bytes.Equal(got.Body, want.Body):
		return ErrOtherJournal
	}
	return nil
}
