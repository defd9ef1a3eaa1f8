// Package modproxy packs the Go modules of the repository as a module proxy serves them. Tests and
// clients/conformance build programs from the packed modules.
package modproxy
