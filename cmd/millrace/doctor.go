package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

type doctorCmd struct {
	sidecarSettings
	signInSettings
}

// gravity is how bad a finding is.
type gravity string

const (
	fine   gravity = "ok"
	advice gravity = "note" // works, but could be better or could not be looked at
	mend   gravity = "MEND"
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
func (c *doctorCmd) Run(ctx context.Context, out output) error {
	ctx, cancel := context.WithTimeout(ctx, doctorLimit)
	defer cancel()
	e := &examination{cfg: &c.sidecarSettings, signIn: &c.signInSettings}
	e.examine(ctx)
	if err := e.print(out.Out); err != nil {
		return err
	}
	for _, f := range e.findings {
		if f.gravity == mend {
			return errSaid
		}
	}
	return nil
}

func (e *examination) examine(ctx context.Context) {
	var err error
	e.conn, err = broker.Dial(ctx, broker.Config{AMQPURL: e.cfg.AMQPURL, Hosts: &e.hosts, Name: connectionName + " doctor", Log: quiet()})
	if err != nil {
		e.note(mend, "broker", err.Error(), reachRemedy(err))
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
		e.note(mend, subject, other.Error()+": a sidecar ends at its start", otherRemedy(other))
	case other != nil:
		e.note(advice, subject, other.Error()+", and is not used: "+withoutManagement, "set --management-url to the management API of this broker; "+byHand)
	case broker.Unauthorized(err):
		e.note(mend, subject, err.Error(), fmt.Sprintf("give the user the tags that it needs: %s set_user_tags %s policymaker monitoring\n"+
			"or, if it is another broker's: set --management-url to the management API of this broker", e.conn.Features().Ctl, quote(e.conn.User())))
	case errors.Is(err, broker.ErrUnproven):
		e.note(mend, subject, err.Error()+": it is not used", "")
	default:
		enable := "say"
		if e.conn.Features().Plugins {
			enable = "rabbitmq-plugins enable rabbitmq_management, or say"
		}
		e.note(advice, subject, "does not answer: policies cannot be looked at, so jobs that workers reject, and jobs for queues "+
			"that do not exist yet, may be lost: "+err.Error(), enable+" where it is with --management-url; "+byHand)
	}
}

func (e *examination) print(w io.Writer) error {
	for _, f := range e.findings {
		fmt.Fprintf(w, "%-5s %-15s %s\n", f.gravity, f.subject, f.text)
		for line := range strings.SplitSeq(f.remedy, "\n") {
			if line != "" {
				fmt.Fprintf(w, "%21s → %s\n", "", line)
			}
		}
	}
	_, err := fmt.Fprint(w, "\nPermissions that each needs in the virtual host (regular expressions over names):\n", permissionsText())
	return err
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
