// Package answer has the types of the REST API's answers. Package httpapi fills them in, and the
// commands decode them. It has no logic, and of ours it knows only package wire.
//
// # Promises
//
// The members are those of httpapi/openapi.yaml: the tests of httpapi compare every answer with it.
// A number that is a time is in seconds since 1970. A member that may be unknown is a pointer: nil
// stands for null, or for a member that is left out.
//
// # Failures
//
// A sidecar of another version may lack members, which are then empty, and have others, which are
// not decoded.
package answer
