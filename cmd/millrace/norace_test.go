//go:build !race

package main

// tried are all tests.
const tried = ""
