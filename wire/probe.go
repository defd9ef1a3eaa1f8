package wire

// To returns the probe as a message that takes the route of a fire, to a queue of the leader. Its
// arrival shows that the route works.
func (p Probe) To(queue string) Message {
	return probe(ExchangeFire, queue, map[string]any{
		HeaderFormat: int64(Format), HeaderOp: OpProbe, HeaderEpoch: p.Epoch, HeaderSeq: p.Number, HeaderConfirmed: p.Confirmed, HeaderRouted: p.Routed,
	})
}

// UnroutedProbe returns a message that takes the route of a job whose queue does not exist: to
// jobs.unrouted.
func UnroutedProbe() Message {
	return probe(ExchangeRoute, "", map[string]any{HeaderOp: OpProbe})
}

// DirectProbe returns a message that takes the route of a client's job for a queue that does not
// exist. The broker returns it if jobs.direct has no alternate exchange.
func DirectProbe(queue string) Message {
	return probe(ExchangeDirect, queue, map[string]any{HeaderOp: OpProbe})
}

// GatedProbe returns a message that takes the route of a fire without a queue. A view that has
// read it has read what jobs.gated got before, and a leader to which it comes back has got the
// fires that came back before.
func GatedProbe(epoch, number int64) Message {
	return probe(Unrouted, "", map[string]any{HeaderFormat: int64(Format), HeaderOp: OpProbe, HeaderEpoch: epoch, HeaderSeq: number})
}

func probe(exchange, key string, headers map[string]any) Message {
	return Message{Exchange: exchange, Key: key, Type: OpProbe, Body: []byte(`{"type":"probe"}`), Headers: headers}
}

// Probe is what the headers of a probe say.
type Probe struct {
	Epoch     int64
	Number    int64 // distinguishes the probes of an epoch
	Confirmed int64 // as in a Dispatch
	Routed    int64 // up to this offset of the journal all fires are known to have arrived
}

// ProbeOf parses the headers of a probe. ok is false for any other message. The caller must check
// by the user that Millrace sent it.
func ProbeOf(headers map[string]any) (p Probe, ok bool) {
	if headers[HeaderOp] != OpProbe {
		return p, false
	}
	p.Epoch, p.Number = HeaderInt(headers, HeaderEpoch), HeaderInt(headers, HeaderSeq)
	p.Confirmed, p.Routed = HeaderInt(headers, HeaderConfirmed), HeaderInt(headers, HeaderRouted)
	return p, true
}
