// Package spectest holds Millrace to its specification: it starts the real sidecar beside a real
// broker and runs the specification's own client code against the two, in Python, Ruby, JavaScript
// and Go.
//
// testdata/specification has that code as the specification prints it, a file for each example, named
// for its section. It is never edited. What has to differ so that it runs is in differences_test.go,
// each with its reason; a difference that does not fit the code fails. Programs around it, such as the
// consume loop that section 3.3 leaves to the reader, are in testdata/drivers.
//
// An interpreter or library that is missing fails the test: `make deps`
// installs all of them.
package spectest
