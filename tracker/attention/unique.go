package attention

import "time"

// Unique is how many unique jobs are undecided, and for how long none has been decided.
type Unique struct {
	Undecided int64
	For       time.Duration
}

// maxUndecided is for how long no unique job has been decided although some wait for that.
const maxUndecided = time.Minute
