// Package cron parses cron expressions and finds the instants that they name.
//
// An expression has the five fields of Vixie cron, with names, ranges, lists and steps. If day of
// month and day of week both name days, either of them is enough. If one of them begins with *,
// both must match.
//
// Across changes to and from daylight saving time it follows Vixie cron too: see Next. No library
// for Go does that for all expressions. The tests compare with an oracle that counts minutes.
package cron
