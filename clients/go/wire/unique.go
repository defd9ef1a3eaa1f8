package wire

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Unique says which jobs count as the same as a job, and what happens when there is one already.
type Unique struct {
	Key     string        // what names the job; empty: By does
	By      []string      // the parts of the job that name it, in order
	Waiting bool          // the key is free when the job is delivered, not only when it has ended
	Replace bool          // a job that waits makes room for a later one
	For     time.Duration // the key is taken at least so long, 0 if not
	Wait    time.Duration // how long the job is put off, each time that one with its key comes
	Max     time.Duration // how long in all, 0 if without end
}

// What Unique can have.
const (
	MaxUniqueBy   = 16                   // parts
	MaxUniqueTime = 366 * 24 * time.Hour // of each time
)

// uniqueParts are the parts of a job that can name it, beside paths into its args.
var uniqueParts = []string{"class", "queue", "args", "jid"}

var uniqueMembers = Set("key", "by", "while", "for", "on", "wait", "max")

// unique reads the member "unique" of a gate, nil if there is none.
func (o Object) unique() (*Unique, error) {
	if !o.Has("unique") {
		return nil, nil
	}
	raw := o.At("unique")
	if !raw.IsObject() {
		return nil, fmt.Errorf("member \"unique\" must be an object")
	}
	members, err := ParseObject(raw.Raw, uniqueMembers)
	if err == nil {
		u := &Unique{}
		if err = members.readUnique(u); err == nil {
			return u, nil
		}
	}
	return nil, fmt.Errorf("member \"unique\": %w", err)
}

func (o Object) readUnique(u *Unique) (err error) {
	if err := o.uniqueName(u); err != nil {
		return err
	}
	if u.Waiting, err = o.either("while", "unfinished", "waiting"); err != nil {
		return err
	}
	if u.Replace, err = o.either("on", "keep", "replace"); err != nil {
		return err
	}
	for name, to := range map[string]*time.Duration{"for": &u.For, "wait": &u.Wait, "max": &u.Max} {
		if *to, err = o.duration(name); err != nil {
			return err
		}
	}
	if u.Max > 0 && u.Wait == 0 {
		return fmt.Errorf("member \"max\" needs \"wait\"")
	}
	return nil
}

// uniqueName reads what names the job.
func (o Object) uniqueName(u *Unique) (err error) {
	if o.Has("key") {
		if o.Has("by") {
			return fmt.Errorf("members \"key\" and \"by\" exclude each other")
		}
		if u.Key, err = o.Text("key"); err != nil {
			return err
		}
		if u.Key == "" {
			return fmt.Errorf("member \"key\" is empty")
		}
		return CheckLimitKey(u.Key)
	}
	if !o.Has("by") {
		u.By = []string{"args", "class", "queue"}
		return nil
	}
	if u.By, err = o.Texts("by"); err != nil {
		return err
	}
	if len(u.By) == 0 || len(u.By) > MaxUniqueBy {
		return fmt.Errorf("member \"by\" must have 1 to %d parts of a job", MaxUniqueBy)
	}
	for _, part := range u.By {
		if path, is := strings.CutPrefix(part, "args."); is && !slices.Contains(strings.Split(path, "."), "") && len(part) <= MaxLimitKey {
			continue
		}
		if !slices.Contains(uniqueParts, part) {
			return fmt.Errorf("member \"by\" has %.40q: use class, queue, args, jid or a path like args.0.customer", part)
		}
	}
	slices.Sort(u.By)
	u.By = slices.Compact(u.By)
	return nil
}

// either reads an optional text of two, and reports whether it is the second.
func (o Object) either(name, usual, other string) (bool, error) {
	text, err := o.Text(name)
	switch {
	case err != nil:
		return false, err
	case o.Has(name) && text != usual && text != other:
		return false, fmt.Errorf("member %q must be %q or %q", name, usual, other)
	}
	return text == other, nil
}

// duration reads an optional number of seconds.
func (o Object) duration(name string) (time.Duration, error) {
	if !o.Has(name) {
		return 0, nil
	}
	v := o.At(name)
	if most := MaxUniqueTime.Seconds(); v.Num <= 0 || v.Num > most {
		return 0, fmt.Errorf("member %q must be a number of seconds above 0, and at most %.0f", name, most)
	}
	return max(time.Microsecond, time.Duration(v.Num*1e6)*time.Microsecond), nil
}
