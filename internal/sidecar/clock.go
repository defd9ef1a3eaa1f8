package sidecar

import (
	"bytes"
	"context"
	"debug/buildinfo"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// A binary with a clock of its own is built with another time.Now: the compiler reads a changed
// copy of one file of the standard library, and one more file. So the whole program has that clock,
// its libraries too, and the sources of the program have nothing of it.

//go:embed testdata/wallclock.go
var wallClock []byte

// The beginning of time.Now, and the line that is added to it. wallClockShift is in wallClock.
const (
	beginOfNow = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	addShift   = "\tsec += wallClockShift()\n"
)

// clockTag is a build tag of a binary with a clock of its own. No file has it: the tag stays
// readable in the binary.
const clockTag = "millrace_wallclock"

// clockFile is the environment variable with the name of the file that has the shift.
const clockFile = "MILLRACE_TEST_WALLCLOCK"

// BuildWithClock compiles the binary into a directory, for processes with Config.OwnClock.
func BuildWithClock(ctx context.Context, dir string) (binary string, err error) {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("sidecar: finding the standard library: %w", err)
	}
	overlay, err := writeOverlay(filepath.Join(string(bytes.TrimSpace(goroot)), "src", "time"), dir)
	if err != nil {
		return "", fmt.Errorf("sidecar: changing time.Now: %w", err)
	}
	return build(ctx, dir, "cmd/millrace", "-overlay", overlay, "-tags", clockTag)
}

// writeOverlay writes what the compiler reads instead of the files of package time.
func writeOverlay(packageTime, dir string) (file string, err error) {
	source := filepath.Join(packageTime, "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	if bytes.Count(text, []byte(beginOfNow)) != 1 {
		return "", fmt.Errorf("%s does not have %q once", source, beginOfNow)
	}
	text = bytes.Replace(text, []byte(beginOfNow), []byte(beginOfNow+addShift), 1)
	changed, added := filepath.Join(dir, "time.go"), filepath.Join(dir, "wallclock.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {source: changed, filepath.Join(packageTime, "wallclock.go"): added}})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, errors.Join(os.WriteFile(changed, text, 0o600), os.WriteFile(added, wallClock, 0o600), os.WriteFile(file, overlay, 0o600))
}

// clock is the wall clock of one process: a file of one number, which the process maps.
type clock struct {
	path  string
	shift *int64 // in seconds
}

func newClock(binary string) (*clock, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(info.Settings, debug.BuildSetting{Key: "-tags", Value: clockTag}) {
		return nil, fmt.Errorf("%s has the clock of the machine: use BuildWithClock", binary)
	}
	file, err := os.CreateTemp("", "millrace-wallclock-")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size := int(unsafe.Sizeof(int64(0)))
	err = file.Truncate(int64(size))
	var page []byte
	if err == nil {
		page, err = syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(file.Name()))
	}
	return &clock{file.Name(), (*int64)(unsafe.Pointer(&page[0]))}, nil
}

// environment returns the variable that makes a process use the clock.
func (c *clock) environment() string { return clockFile + "=" + c.path }

// set makes the clock run ahead of the machine's, or behind it.
func (c *clock) set(by time.Duration) { atomic.StoreInt64(c.shift, int64(by/time.Second)) }

// remove removes the file. The memory stays mapped, so set never fails.
func (c *clock) remove() { _ = os.Remove(c.path) }
