package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/httpapi/live"
	"github.com/millrace-jobs/millrace/httpapi/prom"
	"github.com/millrace-jobs/millrace/wire"
)

// Bounds of a connection.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	writeTimeout  = time.Minute // exports move it on as they go
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// entrySets are the sets of entries: how paths name them, where they stand, and how metrics name them.
var entrySets = []struct{ path, stream string }{
	{"scheduled-jobs", wire.ScheduledJobs}, {"retries", wire.Retries}, {"dead-jobs", wire.DeadJobs}, {"gated-jobs", wire.Gated},
}

// Server answers HTTP requests.
type Server struct {
	cfg     Config
	auth    *auth.Authenticator
	shared  shared
	hide    redaction
	failing singleflight.Group // leases whose failure is being written down

	fingerprints *fingerprints
	leading      memo
	accepted     atomic.Bool // clients could publish jobs once
	exporter     *prom.Exporter
	observer     *observer
	handler      http.Handler
	origins      *auth.Origins
	events       *live.Events
	stopping     chan struct{} // closed when Run is to end

	maxSearched int64         // entries that one call looks at; tests lower it
	maxTally    time.Duration // how long it counts on; tests raise it

	maxFetchTime time.Duration // how long a list reads large records; tests raise it
}

// New makes a server; Run or Handler puts it to use.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg.withDefaults(), maxSearched: maxSearched, maxTally: maxTally, maxFetchTime: maxFetchTime, stopping: make(chan struct{})}
	s.origins, s.fingerprints = auth.NewOrigins(s.cfg.CORSOrigins), newFingerprints()
	s.auth = auth.New(auth.Config{
		Mode: s.cfg.Auth, HasUsers: s.cfg.HasUsers, Identify: s.cfg.Identify, TokensFile: s.cfg.TokensFile, SessionKey: s.cfg.SessionKey,
		CookiePath: s.cfg.Prefix + "/", Exposed: s.cfg.BehindProxy || !auth.IsLocalAddr(s.cfg.Addr), BehindProxy: s.cfg.BehindProxy,
		ReadOnly: s.cfg.ReadOnly, Now: s.cfg.Now, Log: s.cfg.Log,
	})
	s.events = live.New(live.Config{Source: liveSource{s}, MayStillRead: s.auth.MayStillRead, CheckOrigin: s.origins.CheckRead, Stopping: s.stopping, Log: s.cfg.Log})
	s.hide = redaction{s.cfg.HideArgs}
	s.exporter = prom.New(prom.Config{
		Version: s.cfg.Version, VHost: s.cfg.VHost, Entries: s.cfg.Entries, View: s.cfg.View, Processes: s.cfg.Processes, Metrics: s.cfg.Metrics,
		Queues: s.cfg.Queues, QueueSLO: s.cfg.QueueSLO, Leader: s.cfg.Leader, Broker: s.cfg.Broker, Usual: s.usual, Viewers: s.events.Counts, Now: s.cfg.Now,
	})
	s.observer = &observer{requests: s.exporter.Requests, log: s.cfg.Log}
	s.handler = s.observer.wrap(harden(s.cfg.Version, auth.NewHosts(s.cfg.Addr, s.cfg.TLS, s.cfg.Hosts).Guard(s.origins.Guard(checkBody(
		stripPrefix(s.cfg.Prefix, routeEscaped(compressed(withUI(s.cfg.Prefix, s.routes())))))))))
	return s
}

// Handler is everything that the server answers, with all of its protections.
func (s *Server) Handler() http.Handler { return s.handler }

// Metrics returns what answers /metrics alone, without sign-in: for a port of its own.
func (s *Server) Metrics() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.exporter.Handler())
	return mux
}

// Run serves until ctx ends, then lets requests end for a while. With a nil listener it listens on the configured address.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	if l == nil {
		var err error
		if l, err = auth.Listen(ctx, s.cfg.Addr, s.cfg.exposure()); err != nil {
			return err
		}
	}
	if err := s.cfg.exposure().Check(l.Addr().String(), l.Addr()); err != nil {
		return errors.Join(err, l.Close())
	}
	// Requests outlive ctx by the grace: a command that was sent still gets its answer.
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := s.httpServer(requests)
	failed := make(chan error, 1)
	go func() {
		if s.cfg.TLS != nil {
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

func (s *Server) httpServer(requests context.Context) *http.Server {
	return &http.Server{
		Handler:           s.handler,
		TLSConfig:         s.cfg.TLS,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return requests },
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
}

// shutdown waits for the requests that run, then ends them.
func (s *Server) shutdown(ctx context.Context, server *http.Server, cancel context.CancelFunc) {
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Grace)
	defer stop()
	err := server.Shutdown(grace)
	ended := make(chan struct{})
	go func() {
		s.observer.running.Lock()
		defer s.observer.running.Unlock()
		close(ended)
	}()
	if err == nil { // WebSockets are not the server's any more: it does not wait until they have been told
		select {
		case <-ended:
			return
		case <-grace.Done():
		}
	}
	s.cfg.Log.Warn("httpapi: requests were cut off at shutdown", "grace", s.cfg.Grace)
	cancel()
	_ = server.Close()
	select {
	case <-ended:
	case <-time.After(s.cfg.Grace):
		s.cfg.Log.Error("httpapi: a request does not end")
	}
}
