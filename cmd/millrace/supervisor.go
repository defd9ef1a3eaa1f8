package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/millrace-jobs/millrace/internal/pause"
	"github.com/millrace-jobs/millrace/scheduler"
)

// notifier notifies systemd of what the sidecar does, if systemd has started it as a service of
// type notify.
type notifier struct {
	unready func() string // why the sidecar is not ready; empty if it is
	leader  func() scheduler.Status
	log     *slog.Logger

	ready  bool   // systemd knows that the sidecar is ready
	status string // the last that was sent
}

// run notifies systemd when the sidecar becomes ready, when it begins to wait for something else,
// regularly that it still runs, and when ctx ends.
func (n *notifier) run(ctx context.Context) {
	watchdog, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn("millrace: systemd's watchdog is not answered", "err", err)
	}
	every := time.Second
	if watchdog > 0 {
		every = min(every, watchdog/3)
	}
	for n.send(n.news(watchdog > 0)) && pause.For(ctx, every) == nil {
	}
	if ctx.Err() != nil {
		n.send("STOPPING=1\nSTATUS=Stopping")
	}
}

// news returns what systemd does not know yet.
func (n *notifier) news(watched bool) string {
	var lines []string
	reason := strings.ReplaceAll(n.unready(), "\n", " ")
	if reason == "" && !n.ready {
		n.ready = true
		lines = append(lines, daemon.SdNotifyReady)
	}
	if status := n.statusOf(reason); status != n.status {
		n.status = status
		lines = append(lines, "STATUS="+status)
	}
	if watched {
		lines = append(lines, daemon.SdNotifyWatchdog)
	}
	return strings.Join(lines, "\n")
}

func (n *notifier) statusOf(reason string) string {
	leader := n.leader()
	switch {
	case reason != "":
		return "Not ready: " + reason
	case leader.Phase == phaseLeading:
		return fmt.Sprintf("Leading (epoch %d)", leader.Epoch)
	}
	return "Following the leader"
}

// send reports whether systemd wants notifications.
func (n *notifier) send(text string) bool {
	if text == "" {
		return true
	}
	sent, err := daemon.SdNotify(false, text)
	if err != nil {
		n.log.Warn("millrace: systemd cannot be notified", "err", err)
		n.ready, n.status = false, "" // all of it is sent again
	}
	return sent || err != nil
}
