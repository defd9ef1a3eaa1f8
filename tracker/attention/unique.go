package attention

import "time"

// Unique is how many unique jobs are undecided, and for how long none has been decided.
type Unique struct {
	Undecided int64
	For       time.Duration
}

// maxUndecided is for how long no unique job has been decided although some wait for that.
const maxUndecided = time.Minute

// unique adds the unique jobs about which no leader decides.
func (f *Facts) unique(add adder) {
	if u := f.Unique; u.Undecided > 0 && u.For > maxUndecided {
		add(Undecided, critical, "", u.For.Seconds(), "for %s, no leader has decided which unique jobs have their keys: %s", span(u.For), waitingJobs(u.Undecided))
	}
}
