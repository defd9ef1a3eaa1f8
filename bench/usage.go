package main

import (
	"context"
	"time"

	"github.com/prometheus/procfs"
)

// usage is what a process has used of the machine.
type usage struct {
	cpu    time.Duration // since it began
	memory int           // resident bytes, now
	peak   int           // resident bytes, at most since it began
}

func usageOf(pid int) (u usage, err error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return u, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return u, err
	}
	status, err := proc.NewStatus()
	if err != nil {
		return u, err
	}
	return usage{time.Duration(stat.CPUTime() * float64(time.Second)), stat.ResidentMemory(), int(status.VmHWM)}, nil
}

// watch watches a process for a while. It returns its share of one CPU, and its highest memory.
func watch(ctx context.Context, pid int, lasting time.Duration) (share float64, memory int, err error) {
	first, err := usageOf(pid)
	if err != nil {
		return 0, 0, err
	}
	begin := time.Now()
	tick := time.NewTicker(lasting / 20)
	defer tick.Stop()
	var now usage
	for time.Since(begin) < lasting {
		select {
		case <-ctx.Done():
			return 0, 0, ctx.Err()
		case <-tick.C:
		}
		if now, err = usageOf(pid); err != nil {
			return 0, 0, err
		}
		memory = max(memory, now.memory)
	}
	return (now.cpu - first.cpu).Seconds() / time.Since(begin).Seconds(), memory, nil
}
