package main

import (
	"errors"
	"fmt"
	"sync"
)

var (
	mu     sync.Mutex
	failed = map[string]bool{}
)

// registerJobs adds the jobs of these tests to those of the specification.
func registerJobs(worker *Worker) {
	worker.RegisterJob("FlakyJob", func(args []interface{}) error {
		mu.Lock()
		defer mu.Unlock()
		name := args[0].(string)
		if !failed[name] {
			failed[name] = true
			return errors.New("not the first time")
		}
		fmt.Printf("FlakyJob ran: %s\n", name)
		return nil
	})
	worker.RegisterJob("BrokenJob", func(args []interface{}) error {
		fmt.Printf("BrokenJob fails: %s\n", args[0])
		return errors.New("never works")
	})
}
