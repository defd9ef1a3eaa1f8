// Command mutants shows that the tests of the core can fail. It breaks the code in one place at a
// time, with a mistake that would lose or double jobs, and runs the test that must detect it.
//
// It works on a copy of the tree, as git knows it, in a temporary directory.
//
// A variant names a declaration, as for `go doc`, and replaces one piece of its code by another.
// The code is compared as syntax: neither its format nor the names of parameters and variables
// matter, and the declaration may move to another file. So "b > a" in a variant stands for "x > y"
// too, and its replacement "b >= a" becomes "x >= y". The piece is an expression, statements, the
// head of a statement ("if b > a {"), a case with its colon, or members of a literal ("Size: a").
// It must occur exactly once, and each local of its replacement must occur in it. `go test
// ./internal/mutants` finds variants for which that is not so, and which must be rewritten.
//
// First it runs all tests on the unchanged code, because a test that fails there detects nothing.
// It fails if a variant survives, does not apply, or does not compile.
//
// `make mutants` runs all variants. `make mutants ARGS=-only=settling` runs those with a word in
// their names.
package main
