package tracker

import (
	"cmp"
	"errors"
	"time"

	"github.com/millrace-jobs/millrace/tracker/table"
	"github.com/millrace-jobs/millrace/wire"
)

// errDamagedGroup is returned if a row of the groups cannot be read.
var errDamagedGroup = errors.New("tracker: a row of a group is damaged")

// DueInGroup calls fn for the entries of a group, in due order, behind a key, until fn returns
// false.
func (l Lookup) DueInGroup(g wire.Group, behind DueKey, fn func(DueKey) bool) error {
	return l.dueBehind(keyGroup(g), behind, fn)
}

// Groups calls fn for each group that has entries, with the first one, until fn returns false.
func (l Lookup) Groups(fn func(g wire.Group, first DueKey) bool) error {
	lower, more := []byte{tableGroup}, true
	for more {
		var next []byte
		err := table.Scan(l.r, lower, table.After([]byte{tableGroup}), false, func(key, _ []byte) (bool, error) {
			d := table.Decoder{B: key[1:]}
			g := wire.Group{Queue: d.Text(), Class: d.Text(), Key: d.Text()}
			if d.Bad || len(d.B) <= table.IntLen {
				return false, errDamagedGroup
			}
			next = table.After(keyGroup(g))
			more = fn(g, dueKeyOf(d.B))
			return false, nil
		})
		if err != nil || next == nil {
			return err
		}
		lower = next
	}
	return nil
}

// CountGroups counts the entries that are due of each group, at most so many. more reports that
// there are more.
func (l Lookup) CountGroups(most int, now time.Time, into map[wire.Group]int) (more bool, err error) {
	counted := 0
	var fault error
	err = l.Groups(func(g wire.Group, _ DueKey) bool {
		n := 0
		fault = l.DueInGroup(g, DueKey{}, func(k DueKey) bool {
			if k.At.After(now) {
				return false
			}
			n++
			counted++
			return counted < most
		})
		if fault != nil {
			return false
		}
		if n > 0 {
			into[g] = n
		}
		more = counted >= most
		return !more
	})
	return more, cmp.Or(err, fault)
}

// AheadInGroup returns how many entries of a gated entry's group are due before it, at most so
// many.
func (l Lookup) AheadInGroup(s *Stored, most int) (n int, err error) {
	own := DueKey{s.At, s.Stream, s.Offset}
	err = l.DueInGroup(s.Group(), DueKey{}, func(k DueKey) bool {
		if !k.Before(own) || n == most {
			return false
		}
		n++
		return true
	})
	return n, err
}
