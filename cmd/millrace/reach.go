package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
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

// reach connects to the broker for the first time, for as long as that takes, and finds out what it is. mgmt is nil where there is no
// management API. An error says that ctx has ended, or is errSetting.
func (s *sidecar) reach(ctx context.Context) (mgmt *broker.Management, err error) {
	retry := backoff.NewExponentialBackOff()
	retry.MaxInterval = reachAtMostEvery
	var said string
	var saidAt time.Time
	for {
		err := s.introduce(ctx)
		if err == nil {
			mgmt = s.management(ctx)
			if err = s.openStreams(ctx, mgmt); err == nil {
				return mgmt, nil
			}
		}
		if mgmt != nil {
			mgmt.Close()
		}
		if errors.Is(err, errSetting) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err.Error() != said || time.Since(saidAt) > remindEvery {
			said, saidAt = err.Error(), time.Now()
			s.log.Warn("millrace: the broker cannot be reached; trying again until it can", "error", err)
		}
		_ = pause.For(ctx, retry.NextBackOff())
	}
}

// introduce asks the broker what it is.
func (s *sidecar) introduce(ctx context.Context) error {
	conn, err := broker.Dial(ctx, s.brokerConfig("looks"))
	if err != nil {
		return err
	}
	s.log.Info("millrace: broker reached", "product", conn.Product(), "version", conn.Version(), "vhost", conn.VHost(), "user", conn.User())
	if err := conn.Features().CheckQueueType(broker.QueueType(s.cfg.QueueType)); err != nil {
		return errors.Join(fmt.Errorf("%w: %w", errSetting, err), conn.Close())
	}
	return conn.Close()
}

// errSetting ends the sidecar: the broker was reached and cannot do what a setting asks for.
var errSetting = errors.New("--queue-type")

// management opens the management API; nil if it does not answer.
func (s *sidecar) management(ctx context.Context) *broker.Management {
	ctx, cancel := context.WithTimeout(ctx, managementPatience)
	defer cancel()
	for {
		mgmt, err := openManagement(ctx, &s.cfg.brokerSettings, s.hosts, s.log)
		if err == nil || broker.Unauthorized(err) || ctx.Err() != nil {
			s.noteManagement(err)
			return mgmt
		}
		_ = pause.For(ctx, time.Second)
		if ctx.Err() != nil {
			s.noteManagement(err)
			return nil
		}
	}
}

func (s *sidecar) noteManagement(err error) {
	s.noteUsers(err)
	if err == nil {
		return
	}
	s.log.Warn("millrace: no management API: jobs that workers reject, and jobs for queues that do not exist yet, are lost unless the "+
		"policies are set by hand (millrace doctor prints them); --management-url says where it is", "error", err)
}

// awaitManagement waits for a management API that did not answer at first; nil when ctx ends.
func (s *sidecar) awaitManagement(ctx context.Context) *broker.Management {
	for {
		_ = pause.For(ctx, managementEvery)
		if ctx.Err() != nil {
			return nil
		}
		mgmt, err := openManagement(ctx, &s.cfg.brokerSettings, s.hosts, s.log)
		s.noteUsers(err)
		if err == nil {
			s.log.Info("millrace: the management API answers now; the scheduler starts again to use it")
			return mgmt
		}
	}
}

func openManagement(ctx context.Context, cfg *brokerSettings, amqp *hosts.Order, log *slog.Logger) (*broker.Management, error) {
	mgmt, err := broker.NewManagement(cfg.managementURL(), cfg.vhost(), log)
	if err != nil {
		return nil, err
	}
	mgmt.Near(amqp)
	if err := mgmt.FindFeatures(ctx); err != nil {
		mgmt.Close()
		return nil, err
	}
	return mgmt, nil
}

// openStreams chooses how streams are read.
func (s *sidecar) openStreams(ctx context.Context, mgmt *broker.Management) error {
	transport, err := openTransport(ctx, &s.cfg, s.hosts, mgmt, s.log)
	if err != nil {
		return err
	}
	s.log.Info("millrace: streams are read", "protocol", transport.Name())
	s.source.use(transport)
	return nil
}

func openTransport(ctx context.Context, cfg *sidecarSettings, amqp *hosts.Order, mgmt *broker.Management, log *slog.Logger) (streams.Transport, error) {
	address, err := cfg.streamURL(ctx, mgmt)
	if err != nil {
		log.Warn("millrace: cannot ask for the broker's stream listeners; --stream-url says where they are", "error", err)
	}
	return streams.Open(ctx, streams.Config{AMQPURL: cfg.AMQPURL, StreamURL: address, Hosts: amqp, Name: connectionName, Log: log})
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
