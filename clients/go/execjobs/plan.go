package execjobs

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	millrace "github.com/millrace-jobs/millrace/clients/go"
)

// Plan is the content of the YAML file.
type Plan struct {
	Queues      Queues           `yaml:"queues"`
	Concurrency int              `yaml:"concurrency"`
	Lanes       map[string]Lane  `yaml:"lanes"`
	Tag         string           `yaml:"tag"`
	StopTimeout time.Duration    `yaml:"stop_timeout"`
	Classes     map[string]Class `yaml:"classes"`
}

// Lane is a pool of slots for some queues.
type Lane struct {
	Queues      Queues `yaml:"queues"`
	Concurrency int    `yaml:"concurrency"`
}

// Class says how the jobs of a class run: with a command, or with a line for the shell.
type Class struct {
	Command []string          `yaml:"command"`
	Shell   string            `yaml:"shell"`
	Dir     string            `yaml:"dir"`
	Env     map[string]string `yaml:"env"`
	Timeout time.Duration     `yaml:"timeout"`
	RetryIn time.Duration     `yaml:"retry_in"`
	// Discard and Kill are exit codes that are not failures. They discard the job, or make it a
	// dead job immediately.
	Discard []int `yaml:"discard"`
	Kill    []int `yaml:"kill"`
}

// Queues are a list (strict) or a map of weights.
type Queues struct {
	Strict  []string
	Weights map[string]int
}

// UnmarshalYAML accepts both forms.
func (q *Queues) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.MappingNode {
		return node.Decode(&q.Weights)
	}
	return node.Decode(&q.Strict)
}

// Read parses a plan and checks it. Unknown keys are errors.
func Read(r io.Reader) (*Plan, error) {
	decoder := yaml.NewDecoder(r)
	decoder.KnownFields(true)
	var p Plan
	if err := decoder.Decode(&p); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("execjobs: read: %w", err)
	}
	return &p, p.check()
}

func (p *Plan) check() error {
	if len(p.Classes) == 0 {
		return errors.New("execjobs: there are no classes")
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(p.Classes)) {
		c := p.Classes[name]
		if name == "" || (len(c.Command) > 0) == (c.Shell != "") {
			errs = append(errs, fmt.Errorf("execjobs: class %q needs a command or a shell line, and not both", name))
		}
		if c.Timeout < 0 || c.RetryIn < 0 {
			errs = append(errs, fmt.Errorf("execjobs: class %q has a negative time", name))
		}
	}
	return errors.Join(errs...)
}

// Worker returns a worker for the plan. log may be nil.
func (p *Plan) Worker(url string, log *slog.Logger) (*millrace.Worker, error) {
	cfg := millrace.WorkerConfig{
		URL: url, Queues: p.Queues.Strict, Weights: p.Queues.Weights, Concurrency: p.Concurrency, Tag: p.Tag, StopTimeout: p.StopTimeout, Logger: log,
	}
	for _, name := range slices.Sorted(maps.Keys(p.Lanes)) {
		l := p.Lanes[name]
		cfg.Lanes = append(cfg.Lanes, millrace.Lane{Name: name, Queues: l.Queues.Strict, Weights: l.Queues.Weights, Concurrency: l.Concurrency})
	}
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	w := millrace.NewWorker(cfg)
	for name, class := range p.Classes {
		options := &millrace.HandlerOptions{Timeout: class.Timeout}
		if class.RetryIn > 0 {
			options.RetryIn = func(int, error, *millrace.RawJob) time.Duration { return class.RetryIn }
		}
		w.Handle(name, class.run, options)
	}
	return w, nil
}
