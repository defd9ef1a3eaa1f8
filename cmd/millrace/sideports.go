package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/auth"
)

// sideSettings say where the side ports are. A side port has one purpose, and users do not sign in.
type sideSettings struct {
	MetricsAddr string `name:"metrics-addr" env:"MILLRACE_METRICS_ADDR" placeholder:"HOST:PORT" help:"Another address for /metrics, without sign-in and TLS: anyone who can connect can read them. Default: nowhere."`
	PprofAddr   string `name:"pprof-addr" env:"MILLRACE_PPROF_ADDR" placeholder:"HOST:PORT" help:"The address of Go's profiles, /debug/pprof/; loopback only. Default: nowhere."`
}

var errNotLoopback = errors.New("profiles reveal secrets: only an address of this machine will do, such as 127.0.0.1:6060")

// sidePort is a listener and its handler.
type sidePort struct {
	what     string
	listener net.Listener
	handler  http.Handler
}

// open listens where the settings say. The caller closes the ports. A port that only this machine
// can reach answers only under names of the machine, or under hosts.
func (s *sideSettings) open(ctx context.Context, metrics http.Handler, hosts []string) (ports []sidePort, err error) {
	defer func() {
		if err != nil {
			closePorts(ports)
			ports = nil
		}
	}()
	var lc net.ListenConfig
	if s.MetricsAddr != "" {
		l, err := lc.Listen(ctx, "tcp", s.MetricsAddr)
		if err != nil {
			return ports, fmt.Errorf("--metrics-addr: %w", err)
		}
		if auth.IsLocal(l) {
			metrics = auth.OnlyExpectedHosts(s.MetricsAddr, hosts, metrics)
		}
		ports = append(ports, sidePort{"metrics", l, metrics})
	}
	if s.PprofAddr != "" {
		l, err := lc.Listen(ctx, "tcp", s.PprofAddr)
		if err != nil {
			return ports, fmt.Errorf("--pprof-addr: %w", err)
		}
		ports = append(ports, sidePort{"profiles", l, auth.OnlyExpectedHosts(s.PprofAddr, hosts, profiles())})
		if !auth.IsLocal(l) {
			return ports, fmt.Errorf("--pprof-addr: %w", errNotLoopback)
		}
	}
	return ports, nil
}

func closePorts(ports []sidePort) {
	for _, p := range ports {
		_ = p.listener.Close()
	}
}

func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

const (
	sideHeaderTimeout = 10 * time.Second
	sideGrace         = time.Second
)

// run serves until ctx ends.
func (p sidePort) run(ctx context.Context) error {
	server := &http.Server{Handler: p.handler, ReadHeaderTimeout: sideHeaderTimeout}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), sideGrace)
		defer cancel()
		if server.Shutdown(grace) != nil {
			_ = server.Close()
		}
	})
	err := server.Serve(p.listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", p.what, err)
}
