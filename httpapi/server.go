package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/live"
	"github.com/millrace-jobs/millrace/httpapi/prom"
)

// Bounds of a connection.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	writeTimeout  = time.Minute // exports move it on as they go
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// Server answers HTTP requests.
type Server struct {
	addr     string
	exposure auth.Exposure
	tls      *tls.Config
	grace    time.Duration
	log      *slog.Logger

	routes   []route
	handler  http.Handler
	observer *observer
	exporter *prom.Exporter
	events   *live.Events
	health   *healthAPI
	stopping chan struct{} // closed when Run is to end

	limits  *limits
	answers *answerCache
}

// New returns a server. Handler and Run use it.
func New(cfg Config) *Server {
	cfg = cfg.withDefaults()
	s := &Server{
		addr: cfg.Addr, tls: cfg.TLS, grace: cfg.Grace, log: cfg.Log, stopping: make(chan struct{}),
		exposure: auth.Exposure{Auth: cfg.Auth, TLS: cfg.TLS != nil, BehindProxy: cfg.BehindProxy},
		limits:   &limits{maxSearched, maxTally, maxFetchTime}, answers: &answerCache{},
	}
	origins := auth.NewOrigins(cfg.CORSOrigins)
	authenticator := auth.New(auth.Config{
		Mode: cfg.Auth, HasUsers: cfg.HasUsers, Identify: cfg.Identify, TokensFile: cfg.TokensFile, HeaderKey: cfg.HeaderKey, SessionKey: cfg.SessionKey,
		CookiePath: cfg.Prefix + "/", Exposed: cfg.BehindProxy || !auth.IsLocalAddr(cfg.Addr), BehindProxy: cfg.BehindProxy,
		ReadOnly: cfg.ReadOnly, Now: cfg.Now, Log: cfg.Log,
	})
	s.connect(&cfg, authenticator, origins)
	s.observer = &observer{requests: s.exporter.Requests, log: cfg.Log}
	s.handler = withUI(cfg.Prefix, router(s.routes, authenticator))
	s.handler = stripPrefix(cfg.Prefix, routeEscaped(compressed(s.handler)))
	s.handler = origins.Guard(checkBody(s.handler))
	s.handler = auth.NewHosts(cfg.Addr, cfg.TLS, cfg.Hosts).Guard(s.handler)
	s.handler = s.observer.wrap(harden(cfg.Version, s.handler))
	return s
}

// parts are what several groups of handlers need.
type parts struct {
	hide         *redactor
	leader       *leader
	records      *records
	workers      *workers
	controls     *controls
	health       *healthAPI
	overview     *overviewAPI
	queues       *queuesAPI
	fingerprints *fingerprints
	definer      *definer
}

// connect makes the groups of handlers, each with the few things that it needs.
func (s *Server) connect(cfg *Config, authenticator *auth.Authenticator, origins *auth.Origins) {
	p := &parts{hide: &redactor{cfg.HideArgs}, leader: &leader{cfg.Ask, cfg.View}, records: &records{cfg.Fetch, s.limits}, fingerprints: newFingerprints()}
	p.definer = &definer{p.leader, func() int64 {
		return cfg.Entries.Periodics.PeriodicVersion() + cfg.Entries.Limits.LimitsVersion() + cfg.Entries.Governed.GovernedVersion()
	}}
	p.workers = &workers{processes: cfg.Processes, metrics: cfg.Metrics, answers: s.answers, now: cfg.Now}
	p.controls = &controls{p.leader, cfg.Publish, cfg.Now}
	p.health = &healthAPI{leader: cfg.Leader, broker: cfg.Broker, ask: cfg.Ask, view: cfg.View, workers: p.workers, now: cfg.Now}
	s.health = p.health
	p.queues = &queuesAPI{watch: cfg.Queues, counts: cfg.Entries.Counts, pauses: cfg.Entries.Pauses, workers: p.workers, leader: cfg.Leader}
	p.overview = &overviewAPI{
		version: cfg.Version, vhost: cfg.VHost, deadMax: cfg.DeadMax, deadAge: cfg.DeadAge, entries: cfg.Entries, view: cfg.View,
		workers: p.workers, queues: p.queues, metrics: cfg.Metrics, leader: cfg.Leader, broker: cfg.Broker, now: cfg.Now,
	}
	s.events = live.New(live.Config{
		Source: &topics{p.overview, p.queues, p.fingerprints, cfg.Feed}, MayStillRead: authenticator.MayStillRead, CheckOrigin: origins.CheckRead,
		Stopping: s.stopping, Log: cfg.Log,
	})
	s.exporter = prom.New(prom.Config{
		Version: cfg.Version, VHost: cfg.VHost, Entries: cfg.Entries, View: cfg.View, Processes: cfg.Processes, Metrics: cfg.Metrics,
		Queues: cfg.Queues, QueueSLO: cfg.QueueSLO, Leader: cfg.Leader, Broker: cfg.Broker, Usual: p.workers.usual,
		Viewers: s.events.Counts, Now: cfg.Now,
	})
	s.routes = slices.Concat(
		s.entryRoutes(cfg, p), s.workRoutes(cfg, p),
		periodicRoutes(&periodicsAPI{p.definer, cfg.Entries.Periodics, p.hide, cfg.Now}), limitRoutes(&limitsAPI{p.definer, cfg.Entries, p.workers, cfg.Queues, cfg.Now}),
		governedRoutes(&governedAPI{p.definer, cfg.Entries, cfg.Queues, cfg.Now}), uniqueRoutes(&uniqueAPI{cfg.Entries.Unique, p.leader, cfg.Now}),
		s.insightRoutes(cfg, p),
		serverRoutes(cfg.Prefix, p.health, &sessionsAPI{authenticator, p.hide, cfg.VHost, cfg.Environment, cfg.ReadOnly}, s.events, s.exporter),
	)
}

// entryRoutes are about pending and rejected records.
func (s *Server) entryRoutes(cfg *Config, p *parts) []route {
	finder := &finder{entries: cfg.Entries, fingerprints: p.fingerprints, answers: s.answers, limits: s.limits}
	return entryRoutes(
		&entriesAPI{entries: cfg.Entries, finder: finder, records: p.records, leader: p.leader, hide: p.hide, now: cfg.Now},
		&operationsAPI{operations: cfg.Entries.BulkOperations, fingerprints: p.fingerprints, leader: p.leader, requests: s.exporter.Requests},
		&rejectedAPI{rejects: cfg.Entries.RejectedRecords, leader: p.leader, fetch: cfg.Fetch, publish: cfg.Publish, hide: p.hide, now: cfg.Now},
	)
}

// workRoutes are about jobs, and the workers and queues that they are in.
func (s *Server) workRoutes(cfg *Config, p *parts) []route {
	return workRoutes(
		&jobsAPI{
			entries: cfg.Entries, records: p.records, workers: p.workers, answers: s.answers, leader: p.leader, controls: p.controls, hide: p.hide,
			runs: &runsAPI{metrics: cfg.Metrics, limits: s.limits, maxAge: cfg.RunAge, now: cfg.Now},
		},
		&enqueueAPI{publish: cfg.Publish, ask: cfg.Ask, await: cfg.Entries.AwaitDecision, governed: cfg.Entries.Governed, prefix: cfg.Prefix, now: cfg.Now},
		&messagesAPI{cfg.Entries, s.answers},
		&processesAPI{p.workers, p.controls},
		p.queues,
		&queueActionsAPI{onBroker: cfg.OnBroker, setPaused: cfg.PauseQueue, leader: p.leader, governed: cfg.Entries.Governed, watch: cfg.Queues, workers: p.workers, now: cfg.Now},
		&leasesAPI{
			entries: cfg.Entries, records: p.records, leader: p.leader, health: p.health, onQueues: cfg.OnQueues, publish: cfg.Publish,
			stopping: s.stopping, now: cfg.Now, log: cfg.Log,
		},
	)
}

// insightRoutes sum up, count and explain.
func (s *Server) insightRoutes(cfg *Config, p *parts) []route {
	return insightRoutes(
		&metricsAPI{metrics: cfg.Metrics, answers: s.answers, publish: cfg.Publish, now: cfg.Now},
		&auditAPI{cfg.Entries.Audit, cfg.Entries.BulkOperations, s.answers, s.limits, cfg.Now},
		&failuresAPI{
			entries: cfg.Entries, metrics: cfg.Metrics, fingerprints: p.fingerprints, answers: s.answers, limits: s.limits, hide: p.hide, now: cfg.Now,
		},
		&dueTimesAPI{cfg.Entries.Lists, cfg.Entries.Counts, s.answers, s.limits, cfg.Now},
		&attentionAPI{
			entries: cfg.Entries, view: cfg.View, workers: p.workers, metrics: cfg.Metrics, queues: cfg.Queues, slo: cfg.QueueSLO,
			leader: cfg.Leader, health: p.health, answers: s.answers, now: cfg.Now,
		},
		p.overview,
	)
}

// Unready returns why /readyz is not ok, or nothing if it is.
func (s *Server) Unready() string { return s.health.unready() }

// Metrics returns a handler of /metrics alone, without sign-in: for a port of its own.
func (s *Server) Metrics() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.exporter.Handler())
	return mux
}

// Run serves until ctx ends, and then waits for requests to end. Without a listener it listens on
// the configured address.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	if l == nil {
		var err error
		if l, err = auth.Listen(ctx, s.addr, s.exposure); err != nil {
			return err
		}
	}
	if err := s.exposure.Check(l.Addr().String(), l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	// Requests may outlive ctx: a command that was sent still gets its answer.
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler: s.handler, TLSConfig: s.tls, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	failed := make(chan error, 1)
	go func() {
		if s.tls != nil {
			failed <- server.ServeTLS(l, "", "")
			return
		}
		failed <- server.Serve(l)
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("httpapi: serve: %w", err)
	case <-ctx.Done():
	}
	close(s.stopping)
	s.shutdown(ctx, server, cancel)
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("httpapi: serve: %w", err)
	}
	return nil
}

// shutdown waits for requests to end, and then cuts them off.
func (s *Server) shutdown(ctx context.Context, server *http.Server, cancel context.CancelFunc) {
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), s.grace)
	defer stop()
	err := server.Shutdown(grace)
	ended := make(chan struct{})
	go func() {
		s.observer.running.Lock()
		defer s.observer.running.Unlock()
		close(ended)
	}()
	if err == nil { // the server does not wait for WebSockets, which are no longer its own
		select {
		case <-ended:
			return
		case <-grace.Done():
		}
	}
	s.log.Warn("httpapi: requests were cut off at shutdown", "grace", s.grace)
	cancel()
	_ = server.Close()
	select {
	case <-ended:
	case <-time.After(s.grace):
		s.log.Error("httpapi: a request does not end")
	}
}
