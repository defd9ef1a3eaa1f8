// Package shapetest holds limits for the shape of the code: how long functions and files may be,
// how many methods and fields a type may have, how wide comments are, where the types of the API's
// answers are, and that the files of a package use each other one way.
//
// # Exceptions
//
// What is larger stands in the table exceptions, with its size. It may shrink, and not grow. An
// entry that is no longer needed is an error, so the table only gets shorter. The table inCircles
// has the packages whose files use each other in circles.
package shapetest
