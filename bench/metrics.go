package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/wire"
)

const (
	targetFold = 100_000         // metric records per second, native
	targetLag  = 1 * time.Second // while records arrive one by one
	lagEvery   = 250 * time.Millisecond

	// backlog is how many seconds' worth of records are published while no sidecar runs. Records
	// that a sidecar has folded are in its roll-ups, and are not read again.
	backlog = 40
)

// measureMetrics publishes one metric record per message, at an even pace, and watches the lag of
// the sidecar. Then it measures how long a new sidecar takes to fold the records that were
// published while no sidecar ran.
func measureMetrics(ctx context.Context, b *bench, v *vhost) error {
	s, err := b.serveProcess(ctx, v)
	if err != nil {
		return err
	}
	lag, sent, took, err := b.metricsFlow(ctx, v, s)
	if err = errors.Join(err, s.Stop()); err != nil {
		return err
	}
	name := fmt.Sprintf("%d metric records a second, one a message", b.size.metrics)
	b.table.addWorst(name+": worst lag", inSeconds, atMost(targetLag.Seconds()), lag.Seconds())
	b.table.addAlone(name+": published", perSecond, noTarget, float64(sent)/took.Seconds())

	return b.measureFolding(ctx, v, sent)
}

func (b *bench) measureFolding(ctx context.Context, v *vhost, sent int) error {
	late := b.size.metrics * backlog
	if err := b.publishBacklog(v, sent, late); err != nil {
		return err
	}
	s, folded, err := b.start(ctx, v, "")
	if err != nil {
		return err
	}
	_, err = metricsOverview(s)
	if err = errors.Join(err, s.Stop()); err != nil {
		return err
	}
	all := sent + late
	own, err := timed(func() error { return readStream(ctx, v, wire.JobMetrics, all) })
	if err != nil {
		return err
	}
	b.table.add("metric records folded, native", perSecond, atLeast(targetFold), float64(late)/folded.Seconds(), float64(all)/own.Seconds())
	return nil
}

// metricsFlow publishes for a while. It returns the worst lag during that time, and how much was
// published.
func (b *bench) metricsFlow(ctx context.Context, v *vhost, s process) (worst time.Duration, sent int, took time.Duration, err error) {
	begin, done := time.Now(), make(chan error, 1)
	go func() {
		var err error
		sent, err = b.publishMetrics(ctx, v)
		done <- err
	}()
	tick := time.NewTicker(lagEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return worst, sent, time.Since(begin), err
		case <-tick.C:
			lag, err := metricsLag(s)
			if err != nil {
				return 0, 0, 0, errors.Join(err, <-done)
			}
			worst = max(worst, lag)
		}
	}
}

// publishMetrics publishes at an even pace, in batches for 10 ms each.
func (b *bench) publishMetrics(ctx context.Context, v *vhost) (sent int, err error) {
	p, err := newPublisher(v)
	if err != nil {
		return 0, err
	}
	defer p.close()
	const every = 10 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	atOnce := b.size.metrics * int(every) / int(time.Second)
	for end := time.Now().Add(b.size.idle); time.Now().Before(end) && ctx.Err() == nil; <-tick.C {
		if err := p.metrics(sent, atOnce); err != nil {
			return sent, err
		}
		sent += atOnce
	}
	return sent, p.drain()
}

// publishBacklog publishes as fast as the broker accepts the records.
func (b *bench) publishBacklog(v *vhost, from, n int) error {
	p, err := newPublisher(v)
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.metrics(from, n); err != nil {
		return err
	}
	return p.drain()
}

// metrics publishes n records, one per message.
func (p *publisher) metrics(from, n int) error {
	for i := range n {
		if err := p.publish("", wire.JobMetrics, metricRecord(from+i)); err != nil {
			return err
		}
	}
	return nil
}

func metricRecord(i int) amqp.Publishing {
	body := fmt.Appendf(nil, `{"type":"job_metric","timestamp":%.3f,"job_class":"Class%d","queue":"q%d","duration_ms":%d,"status":"success",`+
		`"worker_identity":"w:1","jid":%q,"wait_ms":%d,"attempt":1}`, wire.Seconds(time.Now()), i%20, i%5, i%1000, jid(i), i%100)
	return amqp.Publishing{DeliveryMode: amqp.Persistent, Body: body}
}

// metricsOverview returns the overview of a sidecar. It fails if the sidecar has rejected metric
// records.
func metricsOverview(s process) (o answer.Overview, err error) {
	o, ok, err := s.Overview()
	if err != nil || !ok {
		return o, errors.Join(err, errors.New("there is no overview"))
	}
	if refused := o.Rejected[wire.JobMetrics].Ever; refused > 0 {
		return o, fmt.Errorf("%d metric records were rejected: nothing is measured", refused)
	}
	return o, nil
}

// metricsLag returns how far a sidecar is behind in the stream of metrics.
func metricsLag(s process) (time.Duration, error) {
	o, err := metricsOverview(s)
	if err != nil {
		return 0, err
	}
	for _, stream := range o.Views.Streams {
		if stream.Stream == wire.JobMetrics {
			return time.Duration(stream.Lag * float64(time.Second)), nil
		}
	}
	return 0, fmt.Errorf("overview: nothing of %s", wire.JobMetrics)
}
