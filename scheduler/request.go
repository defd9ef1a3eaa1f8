package scheduler

import "github.com/millrace-jobs/millrace/wire"

// request is a command, and whom to answer.
type request struct {
	cmd    wire.Command
	answer func(wire.Reply)
}

// reply answers a request.
func (r request) reply(with wire.Reply) error {
	r.answer(with)
	return nil
}

// done answers that a request was carried out.
func (r request) done() error { return r.reply(wire.Reply{Status: wire.StatusDone}) }

func conflict(reason string) wire.Reply {
	return wire.Reply{Status: wire.StatusConflict, Error: "conflict", Reason: reason}
}

func notFound(reason string) wire.Reply {
	return wire.Reply{Status: wire.StatusNotFound, Error: "not_found", Reason: reason}
}

func badRequest(reason string) wire.Reply {
	return wire.Reply{Status: wire.StatusBad, Error: "bad_request", Reason: reason}
}

func unavailable(reason string) wire.Reply {
	return wire.Reply{Status: wire.StatusUnavailable, Error: "service_unavailable", Reason: reason}
}

// about adds to a reply what happened to the entry last.
func about(h *wire.Happened, r wire.Reply) wire.Reply {
	r.Happened = h
	return r
}
