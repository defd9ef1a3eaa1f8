package millrace

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Worker runs the jobs of its queues. Register handlers, then call Run.
type Worker struct {
	cfg      WorkerConfig
	hosts    *hosts
	identity string
	process  string // unique, even among processes with the same identity
	started  time.Time
	lanes    []*lane
	running  *running
	metrics  *metrics
	beat     chan struct{} // the state has changed, and a heartbeat is due
	unended  chan key      // jobs whose end the next connection must record
	registry
	stopping
	pausedQueues
}

// registry has the functions that a worker calls. It does not change once Run was called.
type registry struct {
	handlers   map[string]*handler
	middleware []Middleware
	hooks      []Hooks     // one for each call of On
	begun      atomic.Bool // Run was called
}

// stopping is how far a worker has ended.
type stopping struct{ quieted, stopped, hurried onceChan }

// handler is a function with its options.
type handler struct {
	run  Handler
	opts HandlerOptions
}

// HandlerOptions are the options of a handler. The zero value sets nothing.
type HandlerOptions struct {
	// RetryIn returns how long a job waits that has failed count+1 times. If the result is not
	// above 0, the usual backoff applies.
	RetryIn func(count int, err error, job *RawJob) time.Duration
	// Timeout is how long an attempt may run if the job has no timeout of its own.
	Timeout time.Duration
}

// Hooks are functions that the worker calls. A nil function is skipped. A hook that panics is
// logged, and has no other effect.
//
// Failure and Death run in the slot of their job. The job is not acknowledged before Failure has
// returned.
type Hooks struct {
	Startup  func() // the worker consumes for the first time
	Quiet    func() // the worker takes no more jobs
	Shutdown func() // every job has ended or was handed back
	// Failure is called when an attempt failed, before the retry or the dead job is published.
	Failure func(job *RawJob, err error)
	// Death is called when a job was given up: after Failure, when the dead job is published or
	// discarded.
	Death func(job *RawJob, err error)
}

// NewWorker returns a worker. Run returns an error if the configuration is not valid.
func NewWorker(cfg WorkerConfig) *Worker {
	cfg = cfg.withDefaults()
	w := &Worker{
		cfg: cfg, identity: identity(cfg.Tag), process: newProcess(), started: time.Now(),
		running: newRunning(), beat: make(chan struct{}, 1), unended: make(chan key, unendedKept),
		registry: registry{handlers: map[string]*handler{}}, stopping: stopping{newOnceChan(), newOnceChan(), newOnceChan()},
		pausedQueues: pausedQueues{paused: map[string]bool{}},
	}
	w.hosts, _ = cfg.hosts() // Run returns the error
	w.metrics = newMetrics(w.identity)
	for _, l := range cfg.lanes() {
		w.lanes = append(w.lanes, newLane(w, l))
	}
	return w
}

func newProcess() string {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never returns an error
	return hex.EncodeToString(id)
}

// Handle registers the function that runs the jobs of a class. options may be nil. For args that
// are one struct, the function [Handle] is better.
//
// It panics, as http.ServeMux does, if the class already has a handler, or if Run was called.
func (w *Worker) Handle(class string, run Handler, options *HandlerOptions) {
	w.beforeRun("Handle")
	switch {
	case class == "":
		panic("millrace: Handle: the class is empty")
	case run == nil:
		panic("millrace: Handle: the handler of " + class + " is nil")
	case w.handlers[class] != nil:
		panic("millrace: Handle: class " + class + " has a handler already")
	}
	w.handlers[class] = newHandler(run, options)
}

// HandleOthers registers the function that runs the jobs of all classes that have no handler of
// their own. options may be nil. It panics if there is one already, or if Run was called.
func (w *Worker) HandleOthers(run Handler, options *HandlerOptions) {
	w.beforeRun("HandleOthers")
	switch {
	case run == nil:
		panic("millrace: HandleOthers: the handler is nil")
	case w.handlers[others] != nil:
		panic("millrace: HandleOthers was called before")
	}
	w.handlers[others] = newHandler(run, options)
}

// others is the key of the handler for classes without one. No job has an empty class.
const others = ""

func newHandler(run Handler, options *HandlerOptions) *handler {
	h := &handler{run: run}
	if options != nil {
		h.opts = *options
	}
	return h
}

// Use adds middleware around all handlers. The first one is the outermost. Use panics if Run was
// called.
func (w *Worker) Use(m ...Middleware) {
	w.beforeRun("Use")
	w.middleware = append(w.middleware, m...)
}

// On adds hooks. Hooks of earlier calls stay, and are called first. On panics if Run was called.
func (w *Worker) On(hooks Hooks) {
	w.beforeRun("On")
	w.hooks = append(w.hooks, hooks)
}

// beforeRun panics if Run was called, because what method registers would have no effect.
func (w *Worker) beforeRun(method string) {
	if w.begun.Load() {
		panic("millrace: " + method + " was called after Run: register handlers, middleware and hooks first")
	}
}

// Identity returns the name of the worker in heartbeats.
func (w *Worker) Identity() string { return w.identity }

// Quiet makes the worker take no more jobs. Running jobs continue.
func (w *Worker) Quiet() {
	w.quieted.close(func() {
		w.changed()
		for _, hooks := range w.hooks {
			w.call("quiet", hooks.Quiet)
		}
	})
}

// Stop makes Run return when all jobs have ended, or when StopTimeout is over and the remaining
// jobs were handed back. A second call ends the wait.
func (w *Worker) Stop() {
	if w.stopped.isClosed() {
		w.hurried.close(nil)
		return
	}
	w.Quiet()
	w.stopped.close(w.changed)
}

// Run runs jobs until Stop is called or ctx ends, which has the same effect. It returns an error if
// the configuration is not valid, or if the broker refuses the worker at its first attempt. After
// any other error it tries again.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.cfg.Check(); err != nil {
		return err
	}
	if !w.begun.CompareAndSwap(false, true) {
		return errors.New("millrace: Run was called before: a worker runs once")
	}
	w.wrap()
	defer context.AfterFunc(ctx, w.Stop)()
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		w.metrics.run()
	}()
	err := w.sessions()
	w.metrics.close()
	<-flushed
	if err == nil {
		w.cfg.Logger.Info("millrace: worker stopped", "identity", w.identity)
	}
	return err
}

// wrap puts the middleware around each handler.
func (w *Worker) wrap() {
	for class, h := range w.handlers {
		w.handlers[class] = w.wrapped(h)
	}
}

func (w *Worker) wrapped(h *handler) *handler {
	run := h.run
	for i := len(w.middleware) - 1; i >= 0; i-- {
		run = w.middleware[i](run)
	}
	return &handler{run, h.opts}
}

// handlerOf returns the handler of a class, with the middleware around it, or nil.
func (w *Worker) handlerOf(class string) *handler {
	h := w.handlers[class]
	if h == nil {
		h = w.handlers[others]
	}
	if h == nil || w.begun.Load() {
		return h
	}
	return w.wrapped(h) // in a test
}

// sessions connects, and connects again after each lost connection, until the worker has stopped.
func (w *Worker) sessions() error {
	ctx, cancel := w.untilStopped()
	defer cancel()
	var pause pauses
	for first := true; !w.stopped.isClosed(); {
		s, err := w.open(ctx)
		if err == nil {
			if first {
				w.logStart()
				for _, hooks := range w.hooks {
					w.call("startup", hooks.Startup)
				}
			}
			first, pause = false, pauses{}
			if err = s.run(ctx); err == nil {
				return nil
			}
		} else if first && unwelcome(err) {
			return fmt.Errorf("millrace: the broker turns us away: %w", err)
		}
		if w.stopped.isClosed() {
			break
		}
		w.cfg.Logger.Warn("millrace: no connection to the broker, trying again", "error", err)
		_ = pause.wait(ctx)
	}
	w.wait()
	w.running.handBack()
	for _, hooks := range w.hooks {
		w.call("shutdown", hooks.Shutdown)
	}
	return nil
}

func (w *Worker) untilStopped() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-w.stopped.c:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// changed wakes the lanes and the heartbeat, because the state has changed.
func (w *Worker) changed() {
	for _, l := range w.lanes {
		poke(l.changed)
	}
	poke(w.beat)
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// call calls a hook.
func (w *Worker) call(name string, hook func()) {
	if hook == nil {
		return
	}
	if err := guard(hook); err != nil {
		w.cfg.Logger.Error("millrace: a hook failed", "hook", name, "error_class", ErrorClass(err), "error", err,
			"stack", strings.Join(firstLines(backtrace(err), defaultBacktrace), "\n"))
	}
}

// callWith calls a hook about a job.
func (w *Worker) callWith(name string, hook func(*RawJob, error), job *RawJob, err error) {
	if hook != nil {
		w.call(name, func() { hook(job, err) })
	}
}

// onceChan is a channel that is closed once.
type onceChan struct {
	c    chan struct{}
	once *sync.Once
}

func newOnceChan() onceChan { return onceChan{make(chan struct{}), new(sync.Once)} }

func (o onceChan) close(then func()) {
	o.once.Do(func() {
		close(o.c)
		if then != nil {
			then()
		}
	})
}

func (o onceChan) isClosed() bool {
	select {
	case <-o.c:
		return true
	default:
		return false
	}
}
