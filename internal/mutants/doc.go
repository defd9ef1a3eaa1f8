// Command mutants shows that the tests of the core can fail. It breaks the code in one place at a
// time, with a mistake that would lose or double jobs, and runs the test that must detect it.
//
// It works on a copy of the tree, as git knows it, in a temporary directory. A variant replaces one
// piece of text in one file by another. The text must occur exactly once. So the command finds
// variants that no longer apply and must be rewritten.
//
// First it runs all tests on the unchanged code, because a test that fails there detects nothing.
// It fails if a variant survives, does not apply, or does not compile.
//
// `make mutants` runs all variants. `make mutants ARGS=-only=settling` runs those with a word in
// their names.
package main
