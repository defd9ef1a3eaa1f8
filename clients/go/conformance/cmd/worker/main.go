// Command worker is tested by clients/conformance. The README there says what it must do.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

// queues are an array (strict) or an object (weighted).
type queues struct {
	strict  []string
	weights map[string]int
}

func (q *queues) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &q.strict) == nil {
		return nil
	}
	return json.Unmarshal(text, &q.weights)
}

type settings struct {
	Queues      queues  `json:"queues"`
	Concurrency int     `json:"concurrency"`
	Tag         string  `json:"tag"`
	StopTimeout float64 `json:"stop_timeout"`
	MaxDeaths   int     `json:"max_deaths"`
	Lanes       []struct {
		Name        string `json:"name"`
		Queues      queues `json:"queues"`
		Concurrency int    `json:"concurrency"`
	} `json:"lanes"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var s settings
	if err := json.Unmarshal([]byte(os.Getenv("MILLRACE_WORKER")), &s); err != nil {
		return err
	}
	file, err := os.OpenFile(os.Getenv("MILLRACE_EFFECTS"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	cfg := millrace.WorkerConfig{
		URL: os.Getenv("MILLRACE_AMQP_URL"), Queues: s.Queues.strict, Weights: s.Queues.weights, Concurrency: s.Concurrency, Tag: s.Tag,
		StopTimeout: time.Duration(s.StopTimeout * float64(time.Second)), MaxDeaths: s.MaxDeaths,
	}
	for _, l := range s.Lanes {
		cfg.Lanes = append(cfg.Lanes, millrace.Lane{Name: l.Name, Queues: l.Queues.strict, Weights: l.Queues.weights, Concurrency: l.Concurrency})
	}
	e := effects{file}
	w := millrace.NewWorker(cfg)
	w.On(millrace.Hooks{
		Startup: func() { e.hook("startup") }, Quiet: func() { e.hook("quiet") }, Shutdown: func() { e.hook("shutdown") },
		Death: func(job *millrace.RawJob, _ error) { e.add("death", "-", job) },
	})
	w.Use(e.around("outer"), e.around("inner"))
	e.handle(w)
	return w.RunWithSignals(context.Background())
}

// effects is the file in which jobs record what they did.
type effects struct{ file *os.File }

func (e effects) write(what, text, jid string, attempt int) {
	line := fmt.Sprintf("%s\t%s\t%s\t%d\t%f\n", what, text, jid, attempt, float64(time.Now().UnixMicro())/1e6)
	if _, err := e.file.WriteString(line); err != nil {
		panic(err)
	}
}

func (e effects) hook(what string) { e.write(what, "-", "", 0) }
func (e effects) add(what, text string, job *millrace.RawJob) {
	e.write(what, text, job.JID, job.Attempt)
}

// args returns the first arg, a text, and the others.
func args(job *millrace.RawJob) (text string, others []json.RawMessage) {
	var all []json.RawMessage
	if json.Unmarshal(job.Args, &all) == nil && len(all) > 0 {
		_ = json.Unmarshal(all[0], &text)
		others = all[1:]
	}
	return text, others
}

func number(others []json.RawMessage) (n float64) {
	if len(others) > 0 {
		_ = json.Unmarshal(others[0], &n)
	}
	return n
}

// around returns middleware that records its name, which shows the order.
func (e effects) around(name string) millrace.Middleware {
	return func(next millrace.Handler) millrace.Handler {
		return func(ctx context.Context, job *millrace.RawJob) error {
			if job.Class != "Wrapped" {
				return next(ctx, job)
			}
			text, _ := args(job)
			e.add(name, text, job)
			if name == "inner" && text == "fail" {
				return onPurpose(text)
			}
			err := next(ctx, job)
			e.add(name+"-end", text, job)
			return err
		}
	}
}

// simple registers a class whose jobs record one line and then return the result of end.
func (e effects) simple(w *millrace.Worker, class string, end func(job *millrace.RawJob, text string, n float64) error, o *millrace.HandlerOptions) {
	w.Handle(class, func(_ context.Context, job *millrace.RawJob) error {
		text, others := args(job)
		e.add("ran", text, job)
		return end(job, text, number(others))
	}, o)
}

func onPurpose(text string) error { return errors.New("failed on purpose: " + text) }

func (e effects) handle(w *millrace.Worker) {
	e.simple(w, "Append", func(*millrace.RawJob, string, float64) error { return nil }, nil)
	e.simple(w, "Wrapped", func(*millrace.RawJob, string, float64) error { return nil }, nil)
	e.simple(w, "Fail", func(_ *millrace.RawJob, text string, _ float64) error { return onPurpose(text) }, nil)
	e.simple(w, "FailSoon", func(job *millrace.RawJob, text string, times float64) error {
		if float64(job.Attempt) <= times {
			return onPurpose(text)
		}
		return nil
	}, &millrace.HandlerOptions{RetryIn: func(int, error, *millrace.RawJob) time.Duration { return 200 * time.Millisecond }})
	e.simple(w, "Fatal", func(_ *millrace.RawJob, text string, _ float64) error {
		return []error{nil}[len(text)+1] // a runtime error
	}, nil)
	e.simple(w, "Discard", func(*millrace.RawJob, string, float64) error { return millrace.Discard("on purpose") }, nil)
	e.simple(w, "Kill", func(_ *millrace.RawJob, text string, _ float64) error {
		return millrace.Kill("killed on purpose: " + text)
	}, nil)
	w.Handle("Sleep", e.sleep, nil)
	w.Handle("Wait", e.wait, nil)
	w.Handle("Die", func(_ context.Context, job *millrace.RawJob) error {
		text, _ := args(job)
		e.add("began", text, job)
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		return self.Kill()
	}, nil)

	w.Handle("Args", func(_ context.Context, job *millrace.RawJob) error {
		_, others := args(job)
		text, err := json.Marshal(others)
		e.add("args", string(text), job)
		return err
	}, nil)

	w.Handle("Trace", func(_ context.Context, job *millrace.RawJob) error {
		trace := job.Traceparent()
		if trace == "" {
			trace = "none"
		}
		e.add("trace", trace, job)
		return nil
	}, nil)

	w.Handle("Noop", func(context.Context, *millrace.RawJob) error { return nil }, nil)
}

func (e effects) sleep(_ context.Context, job *millrace.RawJob) error {
	text, others := args(job)
	e.add("began", text, job)
	time.Sleep(time.Duration(number(others) * float64(time.Second)))
	e.add("ran", text, job)
	return nil
}

func (e effects) wait(ctx context.Context, job *millrace.RawJob) error {
	text, others := args(job)
	e.add("began", text, job)
	timer := time.NewTimer(time.Duration(number(others) * float64(time.Second)))
	defer timer.Stop()
	select {
	case <-timer.C:
		e.add("ran", text, job)
		return nil
	case <-job.Stopping():
	case <-ctx.Done():
	}
	e.add("stopped", text, job)
	return millrace.ErrHandBack
}
