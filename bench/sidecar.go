package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/millrace-jobs/millrace/wire"
)

// sidecar is Millrace beside a vhost: the real binary, or its parts in this process.
type sidecar interface {
	leads() (bool, error)
	scheduled() (int64, error) // how many entries are pending
	stop() error
}

// serve starts a sidecar and waits until it leads.
func (b *bench) serve(ctx context.Context, v *vhost) (s sidecar, err error) {
	if b.cpuProfile != "" {
		s, err = b.startParts(v)
	} else {
		s, err = b.startProcess(v)
	}
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, startWithin, "the sidecar leads", s.leads); err != nil {
		_ = s.stop()
		return nil, err
	}
	return s, nil
}

const identity = "bench"

// process is one `millrace serve`.
type process struct {
	cmd    *exec.Cmd
	url    string
	exited chan struct{} // closed when it has, and err is set
	err    error
}

func (b *bench) startProcess(v *vhost) (*process, error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p := &process{url: "http://" + addr, exited: make(chan struct{})}
	p.cmd = exec.Command(b.binary, "serve", "--amqp-url", v.amqpURL, "--management-url", v.management, "--stream-url", v.streamURL,
		"--http-addr", addr, "--identity", identity, "--auth", "none", "--log-level", b.logLevel())
	if b.verbose {
		p.cmd.Stdout, p.cmd.Stderr = b.stderr, b.stderr
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for us: we stop it in our turn
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// overview is what the API tells that matters here.
type overview struct {
	Leader struct {
		Identity string `json:"identity"`
	} `json:"leader"`
	Self struct {
		Leader bool `json:"leader"`
	} `json:"scheduler"`
	Sets map[string]struct {
		Total int64 `json:"total"`
	} `json:"sets"`
}

var client = &http.Client{Timeout: 5 * time.Second}

// ask gets the overview; ok is false while there is none.
func (p *process) ask() (o overview, ok bool, err error) {
	select {
	case <-p.exited:
		return o, false, fmt.Errorf("millrace serve has ended: %w", p.err)
	default:
	}
	resp, err := client.Get(p.url + "/api/overview")
	if err != nil {
		return o, false, nil //nolint:nilerr // it does not listen yet
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return o, false, nil
	}
	return o, true, json.NewDecoder(resp.Body).Decode(&o)
}

func (p *process) leads() (bool, error) {
	o, ok, err := p.ask()
	return ok && o.Self.Leader && strings.HasPrefix(o.Leader.Identity, identity+"/"), err
}

func (p *process) scheduled() (int64, error) {
	o, _, err := p.ask()
	return o.Sets["scheduled-jobs"].Total, err
}

// stopWithin is how long a sidecar may take to end in order.
const stopWithin = 15 * time.Second

func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		return p.err
	case <-time.After(stopWithin):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("millrace serve did not end within %v", stopWithin)
	}
}

// streams that a sidecar's view is made of, beside the journal.
var viewed = []string{wire.ScheduledJobs, wire.Retries, wire.DeadJobs, wire.Heartbeats, wire.JobMetrics}

func (b *bench) logLevel() string {
	if b.verbose {
		return "info"
	}
	return "error"
}
