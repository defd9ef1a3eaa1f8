// Command packgo packs the module of the Go client: packgo SOURCES PROXY. It adds the module in the
// folder SOURCES to the module proxy in the folder PROXY, and prints its path and version.
package main

import (
	"fmt"
	"os"

	client "github.com/millrace-jobs/millrace/clients/go"
	"github.com/millrace-jobs/millrace/internal/modproxy"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: packgo SOURCES PROXY")
		os.Exit(2)
	}
	version := "v" + client.Version
	if _, err := modproxy.Pack(os.Args[2], modproxy.Client, version, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "packgo:", err)
		os.Exit(1)
	}
	fmt.Println(modproxy.Client, version)
}
