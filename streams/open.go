package streams

import (
	"context"
	"errors"

	"github.com/millrace-jobs/millrace/broker"
)

// Open connects, so that a wrong URL shows immediately, and chooses the transport: native if
// StreamURL answers, else AMQP 0-9-1.
func Open(ctx context.Context, cfg Config) (Transport, error) {
	cfg = cfg.withDefaults()
	if cfg.AMQPURL == "" {
		return nil, errors.New("streams: no AMQP URL")
	}
	if cfg.StreamURL == "" {
		return openAMQP(ctx, cfg)
	}
	native, err := newNative(cfg)
	if err != nil {
		cfg.Log.Warn("streams: "+overAMQP, "url", broker.MaskURL(cfg.StreamURL), "error", err)
		return openAMQP(ctx, cfg)
	}
	return openChoice(ctx, cfg, native)
}
