// Command mutants shows that the tests of the core can fail: it breaks the code in one place at a time, each a mistake that would lose or
// double jobs, and runs the test that must notice.
//
// The tree, as git knows it, is copied to a temporary folder; nothing is changed here. A variant is one piece of text in one file that is
// replaced by another; it must be there exactly once, so a variant that no longer applies is found, and is to be written anew. First all tests
// run on the code as it is: what fails there catches nothing. The command fails where a variant survives, or does not apply, or does not
// compile.
//
// `make mutants` runs all, `make mutants ARGS=-only=settling` those whose names contain a word.
package main
