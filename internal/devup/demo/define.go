package demo

import (
	"context"
	"time"

	millrace "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/pause"
)

// periodic are the periodic jobs of the demo: one that is due while a person is watching, and one
// that is due at night.
var periodic = []millrace.PeriodicJob{
	{Name: "demo.clean-up", Every: 30 * time.Second, Args: millrace.Args(cleanUp), Options: &millrace.EnqueueOptions{Queue: queueLow}, Overlap: millrace.OverlapSkip},
	{Name: "demo.daily-report", Cron: "0 3 * * *", TZ: "Europe/Stockholm", Args: millrace.Args(dailyReport, "sales"), Options: &millrace.EnqueueOptions{Queue: queueDefault}},
}

// define defines the periodic jobs, once a sidecar leads.
func (d *Demo) define(ctx context.Context) error {
	client, err := millrace.NewClient(millrace.ClientConfig{URL: d.AMQPURL})
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		_, err := client.Define(ctx, "demo", periodic...)
		if err == nil || ctx.Err() != nil {
			break
		}
		d.Log.Warn("demo: periodic jobs are not defined, it is tried again", "error", err)
		_ = pause.For(ctx, reconnect)
	}
	return nil
}
