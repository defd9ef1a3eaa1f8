package httpapi

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/millrace-jobs/millrace/httpapi/problem"
	"github.com/millrace-jobs/millrace/wire"
)

// definer has the leader change what is defined.
type definer struct {
	leader  *leader
	version func() int64 // changes when this sidecar has read a change
}

// send sends a command. Once the leader has carried it out, it waits for this sidecar to read what
// has changed.
func (d *definer) send(in *problem.Request, cmd wire.Command) (wire.Reply, error) {
	before := d.version()
	reply, p := d.leader.send(in, sign(in, cmd))
	if p != nil {
		return reply, p
	}
	if did := reply.Defined; !cmd.DryRun && (did == nil || len(did.Made)+len(did.Changed)+len(did.Forgotten) > 0) {
		d.leader.readBack(in.Request().Context(), readBackLimit, func() bool { return d.version() != before })
	}
	return reply, nil
}

// command checks a command here: a leader that is away need not be asked about a mistake.
func (d *definer) command(in *problem.Request, cmd wire.Command) (wire.Reply, error) {
	if err := checkCommand(in, cmd); err != nil {
		return wire.Reply{}, err
	}
	return d.send(in, cmd)
}

// checkCommand returns what is wrong with a request or with the command that it makes.
func checkCommand(in *problem.Request, cmd wire.Command) error {
	body, err := json.Marshal(cmd)
	if err == nil && in.Err() == nil {
		_, err = wire.ParseCommand(body)
	}
	if err != nil {
		in.BadRequest("%s", err)
	}
	return in.Err()
}

type definitionsRequest wire.Definitions

// UnmarshalJSON refuses a layer that is null: it would be another one.
func (r *definitionsRequest) UnmarshalJSON(raw []byte) error {
	return problem.DecodeStrict(raw, (*wire.Definitions)(r))
}

// defineAll takes what a source defines.
func (d *definer) defineAll(in *problem.Request) (any, error) {
	in.Query("dry_run")
	dry := dryRun(in)
	var request definitionsRequest
	in.Body(&request)
	body := wire.Definitions(request)
	if body.Layer == wire.LayerOperator {
		in.BadRequest("layer must be code or file: operators use /api/periodic-jobs/:name, /api/limits/:name and /api/governed-queues/:name")
	}
	reply, err := d.command(in, wire.Command{Command: wire.CommandDefine, Definitions: &body, DryRun: dry})
	if err != nil {
		return nil, err
	}
	if reply.Defined == nil { // it was carried out before
		return wire.DefineResult{Made: []string{}, Changed: []string{}, Forgotten: []string{}}, nil
	}
	return reply.Defined, nil
}

// dryRun reports whether a request only asks what would change.
func dryRun(in *problem.Request) bool {
	dry := in.Text("dry_run")
	if dry != "" && dry != "true" && dry != "false" {
		in.BadRequest("parameter dry_run is %q: it must be true or false", problem.Shorten(dry))
	}
	return dry == "true"
}

// layer returns the operator's layer in the body of a request, with the name in its path.
func layer(in *problem.Request) (json.RawMessage, error) {
	var members map[string]json.RawMessage
	in.Body(&members)
	quoted := json.RawMessage(wire.Quote(in.PathParam("name")))
	if given := members["name"]; given != nil && string(given) != string(quoted) {
		in.BadRequest("the name in the body differs from that in the path")
	}
	if members == nil {
		in.BadRequest("the body must be a JSON object: the operator's layer of the definition")
		return nil, in.Err()
	}
	members["name"] = quoted
	raw, err := json.Marshal(members)
	if err != nil {
		in.BadRequest("%s", err)
	}
	return raw, in.Err()
}

// withOperator returns the layers of a definition with another one of the operator.
func withOperator(layers map[string]wire.DefinedLayer, value json.RawMessage, now time.Time) map[string]wire.DefinedLayer {
	would := map[string]wire.DefinedLayer{}
	maps.Copy(would, layers)
	would[wire.LayerOperator] = wire.DefinedLayer{Value: value, At: wire.Seconds(now)}
	return would
}

// operators returns the command that sets the operator's layer of what a document defines.
func operators(all wire.Definitions) wire.Command {
	all.Layer = wire.LayerOperator
	return wire.Command{Command: wire.CommandDefine, Definitions: &all}
}

// set returns a handler that sets the operator's layer of what its path names.
func (d *definer) set(document func(one json.RawMessage) wire.Definitions) handler {
	return func(in *problem.Request) error {
		in.Query()
		raw, err := layer(in)
		if err != nil {
			return err
		}
		_, err = d.command(in, operators(document(raw)))
		return err
	}
}

// naming puts the name of a definition of one kind into a command.
type naming func(c *wire.Command, name string)

// forget returns a handler that removes what its path names, or a layer of it.
func (d *definer) forget(named naming) handler {
	return func(in *problem.Request) error {
		cmd := wire.Command{Command: wire.CommandForget}
		named(&cmd, in.PathParam("name"))
		in.Query("layer")
		cmd.Layer, cmd.Reason = in.Text("layer"), readReason(in)
		_, err := d.command(in, cmd)
		return err
	}
}

// pause returns a handler that pauses or resumes what its path names.
func (d *definer) pause(verb string, named naming) handler {
	return func(in *problem.Request) error {
		cmd := wire.Command{Command: verb}
		named(&cmd, in.PathParam("name"))
		in.Query()
		cmd.Reason = readReason(in)
		_, err := d.command(in, cmd)
		return err
	}
}
