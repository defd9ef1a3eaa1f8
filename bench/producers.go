package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/wire"
)

// targetProducer is the part of the rate of its language's bare AMQP library that a client must
// reach.
const targetProducer = 0.9

// enqueueAtOnce is how many jobs are in one call of a client's bulk enqueue.
const enqueueAtOnce = 500

// produced are the seconds that a program of a language took to publish the same jobs, each
// confirmed: with the AMQP library alone, and with Millrace's client.
type produced struct {
	Single, Bulk struct{ Bare, Library float64 }
}

// measureProducers lets each language's client enqueue jobs, one by one and in bulk. Its AMQP
// library alone publishes messages of the same size to the same exchange.
func measureProducers(ctx context.Context, b *bench, v *vhost) (err error) {
	s, err := b.serve(ctx, v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	return eachLanguage(ctx, b.size.languages, func(lang, dir string) error {
		took, err := produce(ctx, b, v, lang, dir)
		if err != nil {
			return err
		}
		rate := func(seconds float64) float64 { return float64(b.size.produced) / seconds }
		b.table.add("confirmed enqueues one by one, "+lang, perSecond, ratioAtLeast(targetProducer), rate(took.Single.Library), rate(took.Single.Bare))
		b.table.add(fmt.Sprintf("confirmed enqueues, %d at once, %s", enqueueAtOnce, lang), perSecond, ratioAtLeast(targetProducer), rate(took.Bulk.Library), rate(took.Bulk.Bare))
		return nil
	})
}

// produce runs the program of a language. Its first round is not counted: the compilers of Node and
// Java are busy in it.
func produce(ctx context.Context, b *bench, v *vhost, lang, dir string) (took produced, err error) {
	queue := "produce-" + lang
	if err := declareBound(v, queue); err != nil {
		return took, err
	}
	settings, err := json.Marshal(map[string]any{"queue": queue, "jobs": b.size.produced, "at_once": enqueueAtOnce, "rounds": 2})
	if err != nil {
		return took, err
	}
	path, err := filepath.Abs(filepath.Join(dir, "enqueue"))
	if err != nil {
		return took, err
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = append(os.Environ(), "MILLRACE_AMQP_URL="+v.amqpURL, "MILLRACE_ENQUEUE="+string(settings))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return took, fmt.Errorf("%w: %s", err, stderr.Bytes())
	}
	lines := bytes.Split(bytes.TrimSpace(stdout.Bytes()), []byte("\n"))
	return took, json.Unmarshal(lines[len(lines)-1], &took)
}

// declareBound declares a job queue and binds it.
func declareBound(v *vhost, queue string) error {
	p, err := newPublisher(v)
	if err != nil {
		return err
	}
	defer p.close()
	full := wire.QueuePrefix + queue
	if _, err := p.ch.QueueDeclare(full, true, false, false, false, amqp.Table{"x-max-priority": wire.MaxPriority}); err != nil {
		return err
	}
	return p.ch.QueueBind(full, queue, wire.ExchangeDirect, false, nil)
}
