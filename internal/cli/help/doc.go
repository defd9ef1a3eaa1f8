// Package help writes the help, the man pages and the shell completion of a command line. All of
// them come from the command tree that kong has, and from Examples.
package help
