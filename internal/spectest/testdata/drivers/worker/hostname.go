package main

import "os"

// hostname has one result. Section 4.4 uses os.Hostname as if it had only one.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
