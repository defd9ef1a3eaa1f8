package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
)

// profile writes a CPU profile of fn, if a profile was requested. Each run overwrites the profile
// of the one before.
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
