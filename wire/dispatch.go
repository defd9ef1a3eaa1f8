package wire

// Dispatch has what the headers of a fire or burial say.
type Dispatch struct {
	Op        string
	Stream    string
	Offset    int64
	JIDTag    string
	Epoch     int64
	Seq       int64
	Confirmed int64
	Actor     string
	Command   string
	Operation string // id of the bulk operation
	Slot      string // the slot that the fire takes, or keeps: see Slot
	Claim     bool   // workers must claim the slot
	Rates     string // see RateUse
}

// Headers returns the dispatch as message headers.
func (d Dispatch) Headers() map[string]any {
	h := map[string]any{
		HeaderFormat: int64(Format), HeaderOp: d.Op, HeaderStream: d.Stream, HeaderOffset: d.Offset, HeaderJID: d.JIDTag,
		HeaderEpoch: d.Epoch, HeaderSeq: d.Seq, HeaderConfirmed: d.Confirmed,
	}
	if d.Actor != "" {
		h[HeaderActor] = ASCII(d.Actor)
	}
	if d.Command != "" {
		h[HeaderCommand] = ASCII(d.Command)
	}
	if d.Operation != "" {
		h[HeaderOperation] = ASCII(d.Operation)
	}
	if d.Slot != "" {
		h[HeaderSlot] = d.Slot
	}
	if d.Claim {
		h[HeaderClaim] = int64(1)
	}
	if d.Rates != "" {
		h[HeaderRates] = d.Rates
	}
	return h
}

// DispatchOf parses the headers of a fire or burial. ok is false for any other record.
func DispatchOf(headers map[string]any) (d Dispatch, ok bool) {
	d.Op, ok = headers[HeaderOp].(string)
	if !ok || d.Op == OpProbe {
		return Dispatch{}, false
	}
	d.Stream, _ = headers[HeaderStream].(string)
	d.JIDTag, _ = headers[HeaderJID].(string)
	d.Actor, _ = headers[HeaderActor].(string)
	d.Command, _ = headers[HeaderCommand].(string)
	d.Operation, _ = headers[HeaderOperation].(string)
	d.Offset = HeaderInt(headers, HeaderOffset)
	d.Epoch = HeaderInt(headers, HeaderEpoch)
	d.Seq = HeaderInt(headers, HeaderSeq)
	d.Confirmed = HeaderInt(headers, HeaderConfirmed)
	d.Slot, _ = headers[HeaderSlot].(string)
	d.Rates, _ = headers[HeaderRates].(string)
	return d, true
}

// Burial reports whether the dispatch sent a job to dead_jobs, and not to its queue.
func (d Dispatch) Burial() bool { return d.Op == OpBuried || d.Op == OpExpired }
