//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyQuiet sends the signals to c that make a worker quiet.
func notifyQuiet(c chan<- os.Signal) { signal.Notify(c, syscall.SIGTSTP) }
