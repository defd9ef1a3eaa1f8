package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	shared "github.com/millrace-jobs/millrace/clients/go/wire"
)

// TickJID returns the jid of the job of a tick. It depends only on name and tick.
func TickJID(name string, tick int64) string {
	sum := sha256.Sum256([]byte(name + "\n" + strconv.FormatInt(tick, 10)))
	return hex.EncodeToString(sum[:12])
}

// TickEntry returns the record of scheduled_jobs that a tick makes.
func (p *Periodic) TickEntry(name, jid string, tick int64, due float64) ([]byte, error) {
	job, err := shared.SetRaw(p.Job, "jid", shared.Quote(jid))
	if err != nil {
		return nil, err
	}
	if job, err = shared.SetRaw(job, "periodic", fmt.Sprintf(`{"name":%s,"tick":%d}`, shared.Quote(name), tick)); err != nil {
		return nil, err
	}
	if p.ExpiresIn > 0 {
		if job, err = shared.SetRaw(job, "expires_at", strconv.FormatFloat(due+p.ExpiresIn, 'f', -1, 64)); err != nil {
			return nil, err
		}
	}
	record := ScheduledJob(jid, due, job)
	_, err = ParseEntry(ScheduledJobs, 0, record)
	return record, err
}

// TickKey returns the key in the headers of a tick's entry. A run that a user asked for is no tick:
// its key has an id too.
func TickKey(name string, tick int64, run string) string {
	key := name + "@" + strconv.FormatInt(tick, 10)
	if run != "" {
		key += "!" + run
	}
	return key
}

// ParseTickKey parses the key of a tick's entry.
func ParseTickKey(key string) (name string, tick int64, run bool, err error) {
	name, at, _ := strings.Cut(key, "@")
	at, _, run = strings.Cut(at, "!")
	tick, err = strconv.ParseInt(at, 10, 64)
	if err != nil {
		return "", 0, false, fmt.Errorf("key %q is not that of a tick", Shorten(key, 100))
	}
	return name, tick, run, nil
}
