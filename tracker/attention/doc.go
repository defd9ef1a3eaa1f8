// Package attention says what an operator should look at, from what is known at a moment: a pure
// function, without clock or I/O.
package attention
