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

// GatedProbe returns a message that takes the route of a fire without a queue. A view that has read
// it has read what jobs.gated got before, and a leader to which it comes back has got the fires that
// came back before.
func GatedProbe(epoch, number int64) Message {
	return probe(Unrouted, "", map[string]any{HeaderFormat: int64(Format), HeaderOp: OpProbe, HeaderEpoch: epoch, HeaderSeq: number})
}

func probe(exchange, key string, headers map[string]any) Message {
	return Message{Exchange: exchange, Key: key, Type: OpProbe, Body: []byte(`{"type":"probe"}`), Headers: headers}
}
