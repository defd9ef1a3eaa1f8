// Package output is how commands read and print: the streams and the terminal behind them, the
// forms of a result, and the question before something is destroyed.
//
// # Forms
//
// A command has one result and prints it in the form that --output names. The forms table and wide
// are for people. The forms json, yaml and ndjson print the API's answer with all its members and
// all digits of its numbers. The form csv prints the table with its whole cells. Sentences beside
// the result go only to people.
//
// # Promises
//
// Text of jobs cannot move the cursor or change its colour: characters that cannot be printed are
// replaced in tables. A table is never wider than the terminal. Colours are used only on a terminal
// that has them, and never if NO_COLOR is set.
//
// # When things fail
//
// An answer that is no JSON is an error, not an empty table. A member of another type than expected
// leaves its cell empty. A question that cannot be asked, because there is no terminal, is a fault
// of the command line: the command does nothing.
package output
