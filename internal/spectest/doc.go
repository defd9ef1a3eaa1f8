// Package spectest checks Millrace against its specification. It starts the real sidecar with a
// real broker, and runs the client code of the specification with both, in Python, Ruby, JavaScript
// and Go.
//
// testdata/specification has this code as the specification prints it, with one file for each
// example, named after its section. These files are never edited. differences_test.go lists the
// changes without which the code does not run, each with its reason. A change that does not fit the
// code fails the test. testdata/drivers has the programs around the code, such as the consume loop
// that section 3.3 leaves to the reader.
//
// A missing interpreter or library fails the test. `make deps` installs all of them.
package spectest
