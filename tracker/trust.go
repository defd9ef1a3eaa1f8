package tracker

import "github.com/millrace-jobs/millrace/wire"

// Trust has the users whose records are obeyed.
type Trust map[string]bool

// Trusts reports whether a record is of a user who is obeyed.
func (t Trust) Trusts(r *wire.Record) bool { return t[r.UserID] }
