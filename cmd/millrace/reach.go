package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/hosts"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/streams"
)

const (
	reachAtMostEvery = 5 * time.Second
	remindEvery      = time.Minute
)

// Variables, so that tests need not wait as long.
var (
	// managementPatience is how long the management API is waited for when the broker already speaks AMQP: they start one after the other.
	managementPatience = 5 * time.Second
	// managementEvery is how often it is looked for later.
	managementEvery = time.Minute
)

// reached is what is known of the broker after the first connection.
type reached struct {
	mgmt      *broker.Management // nil: there is none
	transport streams.Transport
	streams   string // the URL of the stream listener; empty: none is known
}

// reach connects to the broker for the first time, for as long as that takes, and finds out what it is. An error says that ctx has
// ended, or is a hopelessError.
func (s *sidecar) reach(ctx context.Context) (*reached, error) {
	retry := backoff.NewExponentialBackOff()
	retry.MaxInterval = reachAtMostEvery
	var said string
	var saidAt time.Time
	var refusedAt time.Time
	for {
		r, err := s.tryReach(ctx)
		var hopeless *hopelessError
		if err == nil || errors.As(err, &hopeless) {
			return r, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		// A broker that is starting, or dies in this moment, may refuse too: so it is asked for a while.
		refusal := broker.Refusal(err)
		switch {
		case refusal == nil:
			refusedAt = time.Time{}
		case refusedAt.IsZero():
			refusedAt = time.Now()
		case time.Since(refusedAt) > refusedFor:
			return nil, &hopelessError{err: refusal, remedy: remedyOf(refusal)}
		}
		if refusal != nil {
			_ = pause.For(ctx, refusedEvery)
			continue
		}
		if err.Error() != said || time.Since(saidAt) > remindEvery {
			said, saidAt = err.Error(), time.Now()
			s.log.Warn("millrace: the broker cannot be reached; trying again until it can (millrace doctor says what to do)", "error", err)
		}
		_ = pause.For(ctx, retry.NextBackOff())
	}
}

// How long a broker may refuse before that is final, and how often it is asked meanwhile.
const (
	refusedFor   = 5 * time.Second
	refusedEvery = time.Second
)

func (s *sidecar) tryReach(ctx context.Context) (*reached, error) {
	if err := s.introduce(ctx); err != nil {
		return nil, err
	}
	mgmt, err := s.management(ctx)
	if err != nil {
		return nil, err
	}
	transport, address, err := openTransport(ctx, &s.cfg, s.hosts, mgmt, s.log)
	if err != nil {
		if mgmt != nil {
			mgmt.Close()
		}
		return nil, err
	}
	return &reached{mgmt, transport, address}, nil
}

// hopelessError ends the sidecar at its first connection: trying again does not help.
type hopelessError struct {
	err    error
	remedy string // lines; empty: err says it
}

func (e *hopelessError) Error() string {
	text := e.err.Error()
	for line := range strings.Lines(e.remedy) {
		text += "\n  → " + strings.TrimSuffix(line, "\n")
	}
	return text
}

func (e *hopelessError) Unwrap() error { return e.err }

// remedyOf says what to do about a refusal. Before the login a broker does not say which one it is.
func remedyOf(e *broker.RefusedError) string {
	command := func(text string) string { return "rabbitmqctl " + text + "   (LavinMQ: lavinmqctl " + text + ")" }
	user, vhost := quote(e.User), quote(e.VHost)
	switch e.Reason {
	case broker.RefusedVHost:
		return "correct the virtual host in --amqp-url, or create it: " + command("add_vhost "+vhost) + "\n" +
			"then give the user access: " + command(sidecarRole.permissions(e.VHost, e.User))
	case broker.RefusedAccess:
		return "give the user access: " + command(sidecarRole.permissions(e.VHost, e.User))
	}
	return "check user and password in --amqp-url (or --amqp-password, --amqp-password-file); guest may connect from the broker's own machine only\n" +
		"set the password: " + command("change_password "+user+" PASSWORD") + "\n" +
		"or add the user: " + command("add_user "+user+" PASSWORD")
}

// introduce asks the broker what it is, and whether Millrace may declare what it needs.
func (s *sidecar) introduce(ctx context.Context) error {
	conn, err := broker.Dial(ctx, s.brokerConfig("looks"))
	if err != nil {
		return err
	}
	defer conn.Close()
	s.log.Info("millrace: broker reached", "product", conn.Product(), "version", conn.Version(), "vhost", conn.VHost(), "user", conn.User())
	if err := conn.Features().CheckQueueType(broker.QueueType(s.cfg.QueueType)); err != nil {
		return &hopelessError{err: fmt.Errorf("--queue-type: %w", err)}
	}
	return mayConfigure(ctx, conn)
}

// management opens the management API; nil if it does not answer. A hopelessError says that --management-url is another broker's.
func (s *sidecar) management(ctx context.Context) (*broker.Management, error) {
	ctx, cancel := context.WithTimeout(ctx, managementPatience)
	defer cancel()
	for found := 0; ; {
		mgmt, err := openManagement(ctx, &s.cfg.brokerSettings, s.hosts, s.log)
		other := otherBroker(err)
		if other != nil {
			found++
		}
		if found >= otherChecks && s.cfg.ManagementURL != "" {
			return nil, &hopelessError{err: other, remedy: otherRemedy(other)}
		}
		if err == nil || found >= otherChecks || broker.Unauthorized(err) || ctx.Err() != nil {
			s.noteManagement(err)
			return mgmt, nil
		}
		_ = pause.For(ctx, time.Second)
		if ctx.Err() != nil {
			s.noteManagement(err)
			return nil, nil
		}
	}
}

// otherChecks is how often a management API must be found to be another broker's: a node that is cut off from the others looks the same.
const otherChecks = 2

// otherBroker is the part of an error that says that the management API is another broker's.
func otherBroker(err error) *broker.OtherBrokerError {
	var other *broker.OtherBrokerError
	if errors.As(err, &other) {
		return other
	}
	return nil
}

func otherRemedy(e *broker.OtherBrokerError) string {
	return "set --management-url to the management API of the broker at " + e.AMQPHost + ", or --amqp-url to the broker of the other"
}

// withoutManagement is what a sidecar without the management API cannot do.
const withoutManagement = "jobs that workers reject, and jobs for queues that do not exist yet, are lost unless the " +
	"policies are set by hand (millrace doctor prints them)"

func (s *sidecar) noteManagement(err error) {
	s.noteUsers(err)
	if err == nil {
		return
	}
	if other := otherBroker(err); other != nil {
		s.dropManagement(other)
		return
	}
	if broker.Unauthorized(err) {
		s.log.Warn("millrace: the management API refuses the user: "+s.managementRemedy()+". Until then "+withoutManagement, "error", err)
		return
	}
	s.log.Warn("millrace: no management API: "+withoutManagement+"; --management-url says where it is", "error", err)
}

// managementRemedy says what to do where the management API refuses the user.
func (s *sidecar) managementRemedy() string {
	u, err := hosts.Parse(s.cfg.managementURL())
	if err != nil {
		return "check --management-url"
	}
	tags := tagsCommand(userOf(u))
	return "give it the tags that it needs with rabbitmqctl " + tags + " (LavinMQ: lavinmqctl " + tags + "), or check the user and password of --management-url"
}

// tagsCommand is the command, without the program, that gives a sidecar's user its tags.
func tagsCommand(user string) string {
	return "set_user_tags " + quote(user) + " " + strings.Join(sidecarTags, " ")
}

// dropManagement notes that the management API is another broker's.
func (s *sidecar) dropManagement(other *broker.OtherBrokerError) {
	if !s.foreign.CompareAndSwap(false, true) {
		return
	}
	s.log.Warn("millrace: no management API: what answers is another broker's, and is not used; "+withoutManagement+
		". Set --management-url to the management API of this broker", "error", other)
}

// awaitManagement waits for a management API that did not answer at first; nil when ctx ends.
func (s *sidecar) awaitManagement(ctx context.Context) *broker.Management {
	for {
		_ = pause.For(ctx, managementEvery)
		if ctx.Err() != nil {
			return nil
		}
		mgmt, err := openManagement(ctx, &s.cfg.brokerSettings, s.hosts, s.log)
		if other := otherBroker(err); other != nil {
			s.dropManagement(other)
			continue
		}
		s.noteUsers(err)
		if err == nil {
			s.foreign.Store(false)
			s.log.Info("millrace: the management API answers now; the scheduler starts again to use it")
			return mgmt
		}
	}
}

// openManagement opens the management API, if it belongs to the broker that AMQP reaches.
func openManagement(ctx context.Context, cfg *brokerSettings, amqp *hosts.Order, log *slog.Logger) (*broker.Management, error) {
	mgmt, err := newManagement(cfg, amqp, log)
	if err != nil {
		return nil, err
	}
	if err := mgmt.FindFeatures(ctx); err != nil {
		mgmt.Close()
		return nil, err
	}
	if err := mgmt.CheckHosts(ctx); err != nil {
		log.Warn("millrace: a host of --management-url is another broker's, or cut off from it, and is not used meanwhile", "error", err)
	}
	return mgmt, nil
}

// newManagement is openManagement that asks nothing yet.
func newManagement(cfg *brokerSettings, amqp *hosts.Order, log *slog.Logger) (*broker.Management, error) {
	mgmt, err := broker.NewManagement(cfg.managementURL(), cfg.vhost(), log)
	if err != nil {
		return nil, err
	}
	mgmt.Near(amqp)
	mgmt.OnlyOf(broker.Config{AMQPURL: cfg.AMQPURL, Hosts: amqp, Name: connectionName + " checks", Log: log})
	return mgmt, nil
}

// openTransport chooses how streams are read. address is the stream listener's, empty if none is known.
func openTransport(ctx context.Context, cfg *sidecarSettings, amqp *hosts.Order, mgmt *broker.Management, log *slog.Logger) (t streams.Transport, address string, err error) {
	if address, err = cfg.streamURL(ctx, mgmt); err != nil {
		log.Warn("millrace: cannot ask for the broker's stream listeners; --stream-url says where they are", "error", err)
	}
	t, err = streams.Open(ctx, streams.Config{AMQPURL: cfg.AMQPURL, StreamURL: address, Hosts: amqp, Name: connectionName, Log: log, Trust: mayTrust})
	return t, address, err
}

// streamURL is where the native stream protocol is spoken; empty if that is not known.
func (s *sidecarSettings) streamURL(ctx context.Context, mgmt *broker.Management) (string, error) {
	if s.StreamURL != "" {
		return s.StreamURL, nil
	}
	amqp := s.amqp()
	if mgmt == nil || amqp.Scheme == "amqps" { // a listener without TLS is not for who asked for TLS
		return "", nil
	}
	addresses, err := mgmt.StreamListeners(ctx)
	if err != nil || len(addresses) == 0 {
		return "", err
	}
	vhost := vhostOf(amqp)
	u := hosts.URL{Hosts: addresses, URL: url.URL{Scheme: "rabbitmq-stream", User: url.UserPassword(userOf(amqp), passwordOf(amqp)),
		Path: "/" + vhost, RawPath: "/" + url.PathEscape(vhost)}}
	return u.String(), nil
}
