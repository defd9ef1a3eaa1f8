package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// profile writes a CPU profile of what fn does, if that was asked for. Of several runs the last one stays.
func (b *bench) profile(name string, fn func() error) (err error) {
	if b.cpuProfile == "" {
		return fn()
	}
	file, err := os.Create(fmt.Sprintf("%s-%s.pprof", b.cpuProfile, name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return fn()
}
