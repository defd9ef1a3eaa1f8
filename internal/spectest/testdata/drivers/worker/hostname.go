package main

import "os"

// hostname is what section 4.4 uses as if os.Hostname had one result.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
