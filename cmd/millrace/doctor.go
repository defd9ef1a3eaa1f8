package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

type doctorCmd struct {
	sidecarSettings
	signInSettings `group:"Connection flags:"`
	output.Result

	Permissions bool `help:"List the permissions that sidecars, producers and workers need, even if none is missing."`
}

// gravity is how bad a finding is.
type gravity string

const (
	fine   gravity = "ok"
	advice gravity = "note" // works, but could be better or could not be looked at
	broken gravity = "FAIL"
)

// finding is what one look found.
type finding struct {
	gravity gravity
	subject string
	text    string
	remedy  string
}

// examination is one visit. What it could not reach is nil.
type examination struct {
	cfg      *sidecarSettings
	signIn   *signInSettings
	hosts    hosts.Order // of AMQP
	conn     *broker.Conn
	mgmt     *broker.Management
	findings []finding
}

func (e *examination) note(g gravity, subject, text, remedy string) {
	e.findings = append(e.findings, finding{g, subject, text, remedy})
}

const doctorLimit = time.Minute

// Run examines the broker and prints what it finds. It changes nothing but what every sidecar sets: Millrace's policies.
func (c *doctorCmd) Run(ctx context.Context, out output.Streams) error {
	ctx, cancel := context.WithTimeout(ctx, doctorLimit)
	defer cancel()
	e := &examination{cfg: &c.sidecarSettings, signIn: &c.signInSettings}
	e.examine(ctx)
	if err := e.print(c.Printer(out), c.Permissions); err != nil {
		return err
	}
	for _, f := range e.findings {
		if f.gravity == broken {
			return output.ErrReported
		}
	}
	return nil
}

func (e *examination) examine(ctx context.Context) {
	var err error
	e.conn, err = broker.Dial(ctx, broker.Config{AMQPURL: e.cfg.AMQPURL, Hosts: &e.hosts, Name: connectionName + " doctor", Log: quiet()})
	if err != nil {
		e.note(broken, "broker", err.Error(), reachRemedy(err))
		return
	}
	defer e.conn.Close()
	e.note(fine, "broker", fmt.Sprintf("%s %s at %s, virtual host %s, as user %s",
		e.conn.Product(), e.conn.Version(), broker.MaskURL(e.cfg.AMQPURL), e.conn.VHost(), e.conn.User()), "")
	e.openManagement(ctx)
	e.rights(ctx)
	if e.mgmt != nil {
		defer e.mgmt.Close()
		for _, look := range []func(context.Context) error{e.alarms, e.lockers, e.policies, e.queues, e.cluster, e.sharing, e.clock} {
			if err := look(ctx); err != nil {
				e.note(advice, "management API", err.Error(), "")
			}
		}
	}
	e.streams(ctx)
	e.sidecar(ctx)
}

// reachRemedy says what to do about a broker that cannot be reached.
func reachRemedy(err error) string {
	if refusal := broker.Refusal(err); refusal != nil {
		return remedyOf(refusal)
	}
	text := err.Error()
	if strings.Contains(text, "refused") || strings.Contains(text, "no such host") || errors.Is(err, context.DeadlineExceeded) {
		return "start the broker, or say where it is with --amqp-url; a firewall may be in between"
	}
	return "check --amqp-url, and the broker's log"
}

func (e *examination) openManagement(ctx context.Context) {
	const subject = "management API"
	var err error
	e.mgmt, err = openManagement(ctx, &e.cfg.brokerSettings, &e.hosts, quiet())
	other := otherBroker(err)
	byHand := "or set the policies by hand:\n" + strings.Join(broker.PolicyCommands(e.conn.Features(), e.conn.VHost()), "\n")
	switch {
	case err == nil:
		e.note(fine, subject, "answers, and is this broker's", "")
	case other != nil && e.cfg.ManagementURL != "":
		e.note(broken, subject, other.Error()+": millrace serve exits at startup", otherRemedy(other))
	case other != nil:
		e.note(advice, subject, other.Error()+", and is not used: "+withoutManagement, "set --management-url to the management API of this broker; "+byHand)
	case broker.Unauthorized(err):
		e.note(broken, subject, err.Error(), fmt.Sprintf("give the user the tags it needs: %s %s\n"+
			"or, if it is another broker's: set --management-url to the management API of this broker", e.conn.Features().Ctl, tagsCommand(e.conn.User())))
	case errors.Is(err, broker.ErrUnproven):
		e.note(broken, subject, err.Error()+", so Millrace does not use it", "")
	default:
		enable := "say"
		if e.conn.Features().Plugins {
			enable = "rabbitmq-plugins enable rabbitmq_management, or say"
		}
		e.note(advice, subject, "does not answer: policies cannot be looked at, so jobs that workers reject, and jobs for queues "+
			"that do not exist yet, may be lost: "+err.Error(), enable+" where it is with --management-url; "+byHand)
	}
}

// print prints the findings, and the permissions that are needed where they are asked for or missing.
func (e *examination) print(p *output.Printer, permissions bool) error {
	if !p.ForPeople() {
		return e.printForPrograms(p)
	}
	for _, f := range e.findings {
		status := p.Paint(string(f.gravity)) + strings.Repeat(" ", 5-len(f.gravity))
		if err := p.Note("%s %-15s %s", status, f.subject, f.text); err != nil {
			return err
		}
		for line := range strings.SplitSeq(f.remedy, "\n") {
			if line != "" {
				_ = p.Note("%21s → %s", "", line)
			}
		}
		permissions = permissions || f.subject == "permissions" && f.gravity == broken
	}
	if !permissions {
		return nil
	}
	return p.Note("\nPermissions that each needs in the virtual host (regular expressions over names):\n%s", strings.TrimSuffix(permissionsText(), "\n"))
}

// printForPrograms prints the findings as a list.
func (e *examination) printForPrograms(p *output.Printer) error {
	all := []output.Fields{}
	t := &output.Table{Columns: []output.Column{output.State("STATUS"), output.Plain("SUBJECT"), output.Fact("TEXT"), output.Fact("REMEDY")}}
	for _, f := range e.findings {
		all = append(all, output.Fields{"status": f.gravity, "subject": f.subject, "text": f.text, "remedy": f.remedy})
		t.Add(f.gravity, f.subject, f.text, f.remedy)
	}
	if !p.Structured() {
		return p.Table(t)
	}
	body, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return p.Answer(body)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
