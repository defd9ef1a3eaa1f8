package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler"
)

// permissionsEvery is how often a sidecar that has not led looks whether the broker refused
// something.
const permissionsEvery = time.Second

// remindEvery is how often the sidecar says again, or tries again, what has not changed.
const remindEvery = time.Minute

// watchPermissions returns a permanentError if the user lacks a permission without which this
// sidecar cannot lead. It is already known that the user may declare things. Whether it may write
// and read them shows only when the broker refuses that. A sidecar that leads has the permissions,
// and keeps trying when it loses them.
func (s *sidecar) watchPermissions(ctx context.Context) error {
	for pause.For(ctx, permissionsEvery) == nil {
		status := s.leader()
		if status.Phase == phaseLeading {
			return nil
		}
		degraded := slices.ContainsFunc(status.Degraded, func(d scheduler.Degraded) bool { return isForbidden(d.Problem) })
		if !s.source.refused.Swap(false) && !degraded && !isForbidden(status.LastError) && !isForbidden(status.Lacks) {
			continue
		}
		var permanent *permanentError
		if err := s.tryPermissions(ctx); errors.As(err, &permanent) {
			return err
		}
		_ = pause.For(ctx, remindEvery) // it was refused for another reason, or cannot be tried now
	}
	return nil
}

func (s *sidecar) tryPermissions(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connect.PermissionsTimeout)
	defer cancel()
	conn, err := broker.Dial(ctx, s.brokerConfig("looks"))
	if err != nil {
		return err
	}
	defer conn.Close()
	return missingPermissions(ctx, conn)
}

// missingPermissions returns a permanentError that names the permissions that the user lacks, and
// nil if it has all of them. The broker logs each attempt, so this is only for when something was
// refused.
func missingPermissions(ctx context.Context, conn *broker.Conn) error {
	lacks, err := conn.Topology().Lacks(ctx, connect.Needed)
	if err != nil || len(lacks) == 0 {
		return err
	}
	return &permanentError{
		err:    fmt.Errorf("user %q may not do what Millrace needs in virtual host %q: %s", conn.User(), conn.VHost(), strings.Join(lacks, ", ")),
		remedy: "give it the permissions: " + connect.Sidecar.Grant(conn.Features(), conn.VHost(), conn.User()),
	}
}

// isForbidden reports whether an error's text says that a permission is missing. LavinMQ answers
// the same where a virtual host has as many queues as it may.
func isForbidden(text string) bool {
	return strings.Contains(text, "ACCESS_REFUSED") && !strings.Contains(text, "limit")
}
