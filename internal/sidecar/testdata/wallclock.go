package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// shiftOfWallClock is mapped from a file that another process writes to. It is nil while this
// package is initialized.
var shiftOfWallClock = mapShift()

func mapShift() *int64 {
	name, _ := syscall.Getenv("MILLRACE_TEST_WALLCLOCK")
	file, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		panic("time: opening MILLRACE_TEST_WALLCLOCK: " + err.Error())
	}
	page, err := syscall.Mmap(file, 0, int(unsafe.Sizeof(int64(0))), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("time: mapping MILLRACE_TEST_WALLCLOCK: " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}

// wallClockShift returns how many seconds the wall clock is ahead of the machine's.
func wallClockShift() int64 {
	if shiftOfWallClock == nil {
		return 0
	}
	return atomic.LoadInt64(shiftOfWallClock)
}
