package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"
)

// doubles counts the jobs of which two different fires arrived, by the truth about the first fire.
type doubles struct {
	Total     int `json:"total"`
	Journaled int `json:"journaled"`
	Stale     int `json:"stale"`
	Answered  int `json:"answered"`
	Nacked    int `json:"nacked"`
	Open      int `json:"open"`
	Bare      int `json:"bare"`   // a copy did not say which fire it was
	Unseen    int `json:"unseen"` // the taps did not see it
	Unkept    int `json:"unkept"` // the broker had confirmed the first, and the journal lacks it
	Stored    int `json:"stored"` // the broker stored a record twice that was published once

	byQueue map[string]int
	example map[string]string // a jid for each truth
}

// staleAfter is how long after an answer a fire must be recorded as confirmed in the journal.
const staleAfter = 2 * time.Second

// countDoubles judges each fire of a job that arrived, when the next one was sent. That one need
// not have arrived: while its queue's node was away, it came back as a copy, which was fired
// later.
func countDoubles(j *jobs, t *truth, log *journal) doubles {
	d, sent := doubles{byQueue: map[string]int{}, example: map[string]string{}}, t.byJob()
	for jid, a := range j.came {
		if a.copies() < 2 {
			continue
		}
		d.Total++
		d.byQueue[j.all[jid].queue]++
		fires := fromFirst(a.fires, sent[jid])
		verdict := "bare"
		if j.stored[jid] > 1 {
			verdict, fires = "stored", nil
		}
		for i := range max(len(fires)-1, 0) {
			if !a.fires[fires[i]] {
				continue
			}
			verdict = judge(fires[i], fires[i+1], t, log)
			if verdict == "journaled" || verdict == "stale" {
				break
			}
		}
		*d.of(verdict)++
		d.example[verdict] = jid + history(fires, t, log)
	}
	return d
}

// fromFirst returns the fires of a job in order, beginning with the first that arrived.
func fromFirst(arrived map[fire]bool, sent []fire) []fire {
	fires := slices.AppendSeq(slices.Clone(sent), maps.Keys(arrived))
	slices.SortFunc(fires, func(a, b fire) int { return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.seq, b.seq)) })
	fires = slices.Compact(fires)
	first := slices.IndexFunc(fires, func(f fire) bool { return arrived[f] })
	return fires[max(first, 0):]
}

// history describes the fires of one job.
func history(fires []fire, t *truth, log *journal) (text string) {
	for _, f := range fires {
		text += fmt.Sprintf("; fire %d/%d", f.epoch, f.seq)
		if at, written := log.written[f]; written {
			text += fmt.Sprintf(" at %d", at)
		}
		if at, said := log.confirmedAt(f); said {
			text += fmt.Sprintf(", confirmed by %d", at)
		}
		if log.returned[f] {
			text += ", returned"
		}
		if fate := t.fires[f]; fate != nil {
			text += ", sent " + fate.sent.Format(clockTime)
			if c := fate.connection; c != nil {
				text += fmt.Sprintf(" by sidecar %d to node %d", c.sidecar+1, c.node+1)
			}
			switch {
			case !fate.acked.IsZero():
				text += ", acked " + fate.acked.Format(clockTime)
			case !fate.nacked.IsZero():
				text += ", nacked " + fate.nacked.Format(clockTime)
			}
		}
	}
	return text
}

const clockTime = "15:04:05.000"

func (d *doubles) of(verdict string) *int {
	switch verdict {
	case "journaled":
		return &d.Journaled
	case "stale":
		return &d.Stale
	case "answered":
		return &d.Answered
	case "nacked":
		return &d.Nacked
	case "open":
		return &d.Open
	case "bare":
		return &d.Bare
	case "unkept":
		return &d.Unkept
	case "stored":
		return &d.Stored
	}
	return &d.Unseen
}

// losses counts the jobs that did not arrive, by the truth about their last fire.
type losses struct {
	Unfired  int `json:"unfired"` // they are pending or held
	Answered int `json:"answered"`
	Nacked   int `json:"nacked"`
	Open     int `json:"open"`
}

func countLosses(jids []string, t *truth) (l losses) {
	last := map[string]*fate{}
	for _, f := range t.fires {
		if before := last[f.jid]; before == nil || f.sent.After(before.sent) {
			last[f.jid] = f
		}
	}
	for _, jid := range jids {
		switch f := last[jid]; {
		case f == nil:
			l.Unfired++
		case !f.acked.IsZero():
			l.Answered++
		case !f.nacked.IsZero():
			l.Nacked++
		default:
			l.Open++
		}
	}
	return l
}

// judge returns the state of the first fire when the second was sent.
func judge(first, second fire, t *truth, log *journal) string {
	f, again := t.fires[first], t.fires[second]
	_, written := log.written[first]
	switch {
	case f != nil && again != nil && !written && !f.acked.IsZero() && f.acked.Before(again.sent):
		return "unkept"
	case log.knew(first, second):
		return "journaled"
	case f == nil || again == nil:
		return "unseen"
	case !f.nacked.IsZero() && f.nacked.Before(again.sent):
		return "nacked"
	case f.acked.IsZero() || f.acked.After(again.sent):
		return "open"
	case f.connection.proven.Sub(f.acked) > staleAfter:
		return "stale"
	}
	return "answered"
}

// standstill returns the longest time between two moments in which nothing arrived for these
// queues. The time after the last job counts only if jobs were due until the end.
func standstill(j *jobs, queues map[string]bool, from, to time.Time, dueUntilEnd bool) time.Duration {
	return longestGap(j.times(queues, from), from, to, dueUntilEnd && len(queues) > 0)
}

// longestGap returns the longest time between two of these moments. The time after the last one
// counts only if untilEnd is set.
func longestGap(times []time.Time, from, to time.Time, untilEnd bool) time.Duration {
	longest, before := time.Duration(0), from
	for _, at := range times {
		if at.After(from) && !at.After(to) {
			longest, before = max(longest, at.Sub(before)), at
		}
	}
	if untilEnd {
		longest = max(longest, to.Sub(before))
	}
	return longest
}

// firstAfter returns how long after a moment the next job arrived for these queues, or zero if none
// did.
func firstAfter(j *jobs, queues map[string]bool, from time.Time) time.Duration {
	if times := j.times(queues, from); len(times) > 0 {
		return times[0].Sub(from)
	}
	return 0
}

// moment is when a job arrived, and for which queue.
type moment struct {
	at    time.Time
	queue string
}

// times returns when jobs arrived for these queues after a moment, in order.
func (j *jobs) times(queues map[string]bool, from time.Time) (times []time.Time) {
	if len(j.moments) != len(j.came) { // there are many, and they are asked for often
		j.moments = j.moments[:0]
		for jid, a := range j.came {
			j.moments = append(j.moments, moment{a.first, j.all[jid].queue})
		}
		slices.SortFunc(j.moments, func(a, b moment) int { return a.at.Compare(b.at) })
	}
	first := sort.Search(len(j.moments), func(i int) bool { return j.moments[i].at.After(from) })
	for _, m := range j.moments[first:] {
		if queues[m.queue] {
			times = append(times, m.at)
		}
	}
	return times
}
