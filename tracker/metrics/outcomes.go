package metrics

import "github.com/millrace-jobs/millrace/wire"

// Outcomes, in the order in which rows count them.
const (
	success = iota
	failed
	dead
	discarded
	expired
	outcomes
)

func outcomeOf(status string) int {
	switch status {
	case wire.MetricSuccess:
		return success
	case wire.MetricFailed:
		return failed
	case wire.MetricDead:
		return dead
	case wire.MetricDiscarded:
		return discarded
	}
	return expired
}

// ends reports whether a job came to its end with an attempt. A failed one comes again, and an
// expired one was not tried.
func ends(outcome int) bool { return outcome == success || outcome == dead || outcome == discarded }

// Counts are how many attempts ended how.
type Counts struct {
	Success   int64 `json:"success"`
	Failed    int64 `json:"failed"`
	Dead      int64 `json:"dead"`
	Discarded int64 `json:"discarded"`
	Expired   int64 `json:"expired"`
}

func (c Counts) plus(o Counts) Counts {
	return Counts{c.Success + o.Success, c.Failed + o.Failed, c.Dead + o.Dead, c.Discarded + o.Discarded, c.Expired + o.Expired}
}

// Count returns how many ended.
func (c Counts) Count() int64 { return c.Success + c.Failed + c.Dead + c.Discarded + c.Expired }

// Processed returns how many ran, failed or not.
func (c Counts) Processed() int64 { return c.Success + c.Failed + c.Dead }

// Failures returns how many ran and failed.
func (c Counts) Failures() int64 { return c.Failed + c.Dead }
