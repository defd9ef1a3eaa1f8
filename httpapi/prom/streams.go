package prom

import "github.com/millrace-jobs/millrace/view"

var (
	descOffset     = desc("stream_offset", "Offset up to which a stream was read, and that of its newest record when the broker was last asked.", "stream", "kind")
	descStreamLag  = desc("stream_lag_seconds", "How far the view is behind a stream, at least.", "stream")
	descStreamLeft = desc("stream_lag_messages", "Offsets of a stream that the view has not read.", "stream")
	descReady      = desc("index_ready", "1 if the view has caught up with every stream.")
)

// streams sends how far the view has read each stream.
type streams struct{ view *view.View }

func (p streams) collect(out sink) {
	ready := true
	for _, t := range p.view.Status() {
		out.gauge(descOffset, float64(t.Position), t.Stream, "applied")
		out.gauge(descStreamLag, t.Lag.Seconds(), t.Stream)
		if t.End != nil {
			out.gauge(descOffset, float64(t.End.Written), t.Stream, "written")
			out.gauge(descStreamLeft, float64(t.End.Left), t.Stream)
		}
		ready = ready && t.CaughtUp
	}
	out.gauge(descReady, truth(ready))
}
