package sidecar

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// The code below gives one process its own wall clock. There is no namespace for that, and a
// preloaded library does not affect Go programs. They call the vDSO: code that the kernel maps into
// every process, so that reading the clock is no system call. While the new process is stopped
// before its first instruction, its copy of that code is replaced. The binary is unchanged.

// ownClock replaces __vdso_clock_gettime. It makes the system call, and for CLOCK_REALTIME it adds
// the word at its end to the seconds.
var ownClock = []byte{
	0xb8, 0xe4, 0x00, 0x00, 0x00, // mov  eax, 228 (clock_gettime)
	0x0f, 0x05, //                   syscall
	0x85, 0xff, //                   test edi, edi (CLOCK_REALTIME is 0)
	0x75, 0x0a, //                   jne  ret
	0x48, 0x8b, 0x0d, 0x06, 0x00, 0x00, 0x00, // mov rcx, [shift]
	0x48, 0x01, 0x0e, //             add  [rsi], rcx
	0xc3,       //                   ret
	0xcc, 0xcc, //
	0, 0, 0, 0, 0, 0, 0, 0, //       shift, in seconds
}

const (
	shiftAt    = 24
	jump       = 0xe9
	jumpLength = 5
)

// clock is the wall clock of one process.
type clock struct {
	pid   int
	shift int64 // address of the word
}

// ownClockOf gives a process its own clock. The process must be stopped and traced by this one.
func ownClockOf(pid int) (*clock, error) {
	from, to, err := vdsoOf(pid)
	if err != nil {
		return nil, err
	}
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	image := make([]byte, to-from)
	if _, err := memory.ReadAt(image, from); err != nil {
		return nil, fmt.Errorf("reading the vDSO: %w", err)
	}
	entry, room, err := placesIn(image)
	if err != nil {
		return nil, err
	}
	if _, err := memory.WriteAt(ownClock, from+room); err != nil {
		return nil, fmt.Errorf("writing the vDSO: %w", err)
	}
	call := binary.LittleEndian.AppendUint32([]byte{jump}, uint32(room-entry-jumpLength)) //nolint:gosec // both are below a few pages
	if _, err := memory.WriteAt(call, from+entry); err != nil {
		return nil, fmt.Errorf("writing the vDSO: %w", err)
	}
	return &clock{pid, from + room + shiftAt}, nil
}

// vdsoOf returns the addresses of the vDSO in a process.
func vdsoOf(pid int) (from, to int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(strings.TrimSpace(line), "[vdso]") {
			_, err := fmt.Sscanf(line, "%x-%x", &from, &to)
			return from, to, err
		}
	}
	return 0, 0, errors.New("the kernel maps no vDSO")
}

// placesIn returns where the function begins, and where there is room for another one: in the table
// of sections, which nothing reads at run time.
func placesIn(image []byte) (entry, room int64, err error) {
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, 0, fmt.Errorf("reading the vDSO: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, 0, fmt.Errorf("reading the vDSO's symbols: %w", err)
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			entry = int64(s.Value) //nolint:gosec // below a few pages
		}
	}
	room = int64(binary.LittleEndian.Uint64(image[0x28:])) //nolint:gosec // e_shoff, within the image
	room = (room + 7) &^ 7
	if entry == 0 || room == 0 || room+int64(len(ownClock)) > int64(len(image)) {
		return 0, 0, errors.New("the vDSO is not as expected")
	}
	return entry, room, nil
}

// set makes the clock run ahead of the machine's, or behind it.
func (c *clock) set(by time.Duration) error {
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", c.pid), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer memory.Close()
	_, err = memory.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(int64(by/time.Second))), c.shift) //nolint:gosec // two's complement is meant
	return err
}

// awaitTrace waits until a traced process is stopped before its first instruction.
func awaitTrace(pid int) error {
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		return err
	}
	if !status.Stopped() {
		return fmt.Errorf("the process did not stop at its start: %v", status)
	}
	return nil
}

// letGo ends the trace, so that the process runs.
func letGo(pid int) error { return syscall.PtraceDetach(pid) }
