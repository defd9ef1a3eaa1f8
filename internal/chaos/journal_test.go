package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// epoch is what the journal says about one epoch.
type epoch struct {
	number    int64
	identity  string
	led       bool // it had settled everything, and fired
	fires     map[int64]string
	at        map[string]time.Time // when each job was last fired
	fired     int64
	confirmed int64
}

// unconfirmed reports whether the epoch ended with unconfirmed fires, as far as the next leader
// could know.
func (e *epoch) unconfirmed() bool { return e.fired > e.confirmed }

// epochs reads the journal.
func (w *world) epochs() []*epoch {
	var all []*epoch
	byNumber := map[int64]*epoch{}
	confirm := func(number, through int64) {
		if e := byNumber[number]; e != nil {
			e.confirmed = max(e.confirmed, through)
		}
	}
	for _, d := range w.v.ReadStream(w.t, wire.Journal) {
		headers := map[string]any(d.Headers)
		if dispatch, ok := wire.DispatchOf(headers); ok {
			if e := byNumber[dispatch.Epoch]; e != nil {
				e.fired = max(e.fired, dispatch.Seq)
				e.fires[dispatch.Seq], e.at[dispatch.JIDTag] = dispatch.JIDTag, d.Timestamp
			}
			confirm(dispatch.Epoch, dispatch.Confirmed)
			continue
		}
		if p, ok := wire.ProbeOf(headers); ok {
			confirm(p.Epoch, p.Confirmed)
			continue
		}
		j, err := wire.ParseJournal(d.Body)
		require.NoError(w.t, err)
		confirm(j.Epoch, max(j.Through, wire.HeaderInt(headers, wire.HeaderConfirmed)))
		if j.Type == wire.TypeWitness && byNumber[j.Epoch] != nil {
			byNumber[j.Epoch].led = true
		}
		if j.Type != wire.TypeOpened {
			continue
		}
		if k := j.KnownConfirmed; k != nil {
			confirm(k.Epoch, k.Through)
		}
		number, _ := headers["x-stream-offset"].(int64)
		e := &epoch{number: number, identity: j.Identity, fires: map[int64]string{}, at: map[string]time.Time{}}
		all, byNumber[number] = append(all, e), e
	}
	return all
}

// moments returns how many of the killed processes died at each of the two moments.
func moments(all []*epoch, killed []string) (unconfirmed, settling int) {
	last := map[string]*epoch{}
	for _, e := range all {
		name, _, _ := strings.Cut(e.identity, "/")
		last[name] = e
	}
	for _, name := range killed {
		e := last[name]
		switch {
		case e == nil:
		case !e.led:
			settling++
			if e.unconfirmed() {
				unconfirmed++
			}
		case e.unconfirmed():
			unconfirmed++
		}
	}
	return unconfirmed, settling
}

// unsure counts the fires that were not known to be confirmed when their epoch ended: those in the
// journal, and those that arrived although the journal has lost them. sure are the jobs that were
// fired again although a fire of them was known to be confirmed.
func (w *world) unsure(all []*epoch, doubled []string) (open int, sure []string) {
	byNumber := map[string]*epoch{}
	for _, e := range all {
		byNumber[fmt.Sprint(e.number)] = e
		for seq := range e.fires {
			if seq > e.confirmed {
				open++
			}
		}
	}
	for _, jid := range doubled {
		unconfirmed := 0
		publishes := w.counter.publishes(jid)
		for _, publish := range publishes {
			number, text, _ := strings.Cut(publish, "/")
			seq, _ := strconv.ParseInt(text, 10, 64)
			e := byNumber[number]
			if e != nil && seq > e.confirmed {
				unconfirmed++
			}
			if e != nil && e.fires[seq] == "" {
				open++
			}
		}
		if unconfirmed < len(publishes)-1 {
			sure = append(sure, fmt.Sprint(jid, publishes))
		}
	}
	return open, sure
}

// history returns when a job was fired, according to the journal.
func history(all []*epoch, jid string) (text string) {
	for _, e := range all {
		if at, fired := e.at[jid]; fired {
			text += fmt.Sprintf(" fired in epoch %d at %s", e.number, at.Format(time.TimeOnly))
		}
	}
	return text
}
