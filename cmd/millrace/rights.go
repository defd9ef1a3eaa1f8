package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler"
)

// mayConfigure returns a hopelessError where the user may not declare what Millrace needs.
func mayConfigure(ctx context.Context, conn *broker.Conn) error {
	may, err := conn.MayConfigure(ctx)
	if err != nil || may {
		return err
	}
	return missingRights(ctx, conn)
}

// missingRights returns a hopelessError that names the permissions that the user lacks, and nil if it has all of them. The broker logs what
// this tries: it is for where something was refused.
func missingRights(ctx context.Context, conn *broker.Conn) error {
	lacks, err := conn.Lacks(ctx, needed)
	if err != nil || len(lacks) == 0 {
		return err
	}
	return &hopelessError{
		err:    fmt.Errorf("user %q may not do what Millrace needs in virtual host %q: %s", conn.User(), conn.VHost(), strings.Join(lacks, ", ")),
		remedy: "give it the permissions: " + sidecarRole.grant(conn.Features(), conn.VHost(), conn.User()),
	}
}

// rightsEvery is how often a sidecar that has not led looks whether the broker refused something.
const rightsEvery = time.Second

// watchRights returns a hopelessError if the user lacks a permission without which this sidecar cannot lead. That it may declare things is
// known by then; that it may not write or read them shows when the broker refuses that. A sidecar that leads has the permissions, and
// keeps trying when it loses them.
func (s *sidecar) watchRights(ctx context.Context) error {
	for pause.For(ctx, rightsEvery) == nil {
		status := s.leader()
		if status.Phase == phaseLeading {
			return nil
		}
		degraded := slices.ContainsFunc(status.Degraded, func(d scheduler.Degraded) bool { return isForbidden(d.Problem) })
		if !s.source.refused.Swap(false) && !degraded && !isForbidden(status.LastError) && !isForbidden(status.Lacks) {
			continue
		}
		var hopeless *hopelessError
		if err := s.tryRights(ctx); errors.As(err, &hopeless) {
			return err
		}
		_ = pause.For(ctx, remindEvery) // it was refused for another reason, or cannot be tried now
	}
	return nil
}

func (s *sidecar) tryRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	conn, err := broker.Dial(ctx, s.brokerConfig("looks"))
	if err != nil {
		return err
	}
	defer conn.Close()
	return missingRights(ctx, conn)
}

// isForbidden reports whether an error's text says that a permission is missing. LavinMQ answers the same where a virtual host has as many
// queues as it may.
func isForbidden(text string) bool {
	return strings.Contains(text, "ACCESS_REFUSED") && !strings.Contains(text, "limit")
}
