//go:build !unix

package main

import "os"

// notifyQuiet sends nothing: this system has no signal that makes a worker quiet.
func notifyQuiet(chan<- os.Signal) {}
