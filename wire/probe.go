package wire

// Probe is what the headers of a probe say.
type Probe struct {
	Epoch     int64
	Number    int64 // tells the probes of an epoch apart
	Confirmed int64 // as of a deed
	Routed    int64 // up to here, in the journal, all that was fired is known to have reached its queue
}

// To is the probe as a message that takes the way of a fire, to a queue of the leader's own, so that it is seen whether that way leads anywhere.
func (p Probe) To(queue string) Message {
	return Message{Exchange: ExchangeFire, Key: queue, Type: OpProbe, Body: []byte(`{"type":"probe"}`), Headers: map[string]any{
		HeaderFormat: int64(Format), HeaderOp: OpProbe, HeaderEpoch: p.Epoch, HeaderSeq: p.Number, HeaderConfirmed: p.Confirmed, HeaderRouted: p.Routed,
	}}
}

// UnroutedProbe takes the way of a job whose queue does not exist: to jobs.unrouted.
func UnroutedProbe() Message {
	return Message{Exchange: ExchangeRoute, Type: OpProbe, Body: []byte(`{"type":"probe"}`), Headers: map[string]any{HeaderOp: OpProbe}}
}

// ProbeOf reads the headers of a probe; ok is false for any other message. Whether Millrace sent it the user tells.
func ProbeOf(headers map[string]any) (p Probe, ok bool) {
	if headers[HeaderOp] != OpProbe {
		return p, false
	}
	p.Epoch, p.Number = Int(headers, HeaderEpoch), Int(headers, HeaderSeq)
	p.Confirmed, p.Routed = Int(headers, HeaderConfirmed), Int(headers, HeaderRouted)
	return p, true
}
