// Package schematest checks the REST API against its contract with schemathesis. That tool
// generates requests from the contract, and finds statuses and members that the contract does not
// describe, requests that are wrongly accepted or refused, errors 500, and routes without
// authentication. The sidecar has jobs of every kind.
//
// The check takes minutes, so it is not part of `make test`: run `make schemathesis`.
package schematest
