// Package schematest has schemathesis, which makes requests from the contract, look for what is not as it says: a status or a member
// that is not described, a request that is taken and should not be or the reverse, an error 500, a route that forgets to ask who is
// there. The sidecar that it asks holds jobs of every kind. It takes minutes, and so is not part of `make test`: `make schemathesis`.
package schematest
