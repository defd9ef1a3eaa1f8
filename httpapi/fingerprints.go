package httpapi

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/millrace-jobs/millrace/httpapi/answer"
	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// fingerprints remembers the errors of entries. A record does not change, so an entry is read once.
type fingerprints struct {
	seed maphash.Seed

	mu         sync.Mutex
	known, old map[entryKey]*failure
	failures   map[string]*failure
}

type entryKey struct {
	stream string
	offset int64
	jid    uint64 // a stream that was recreated has another job there
}

// failure is the error of all entries with a fingerprint. example is the first line of the message
// of one of them.
type failure struct {
	answer.Failure
	example string
}

const (
	maxExample      = 500             // bytes
	maxFingerprints = 2 * maxSearched // are kept at least; at most twice as many
)

func newFingerprints() *fingerprints {
	return &fingerprints{seed: maphash.MakeSeed(), known: map[entryKey]*failure{}, failures: map[string]*failure{}}
}

// of returns the error of an entry; nil if it is gone. read is false if the view has no record.
func (f *fingerprints) of(entries tracker.Lookup, stream string, r *tracker.Row) (what *failure, read bool, err error) {
	key := f.key(stream, r)
	f.mu.Lock()
	what, known := f.get(key)
	f.mu.Unlock()
	if known {
		return what, true, nil
	}
	stored, err := entries.Get(stream, r.Offset)
	if err != nil || stored == nil {
		return nil, true, err
	}
	if stored.Raw == nil {
		return nil, false, nil
	}
	e, err := stored.Entry(nil)
	if err != nil {
		return nil, true, nil // it was an entry when it was folded
	}
	what = &failure{Failure: answer.Failure{Fingerprint: wire.Fingerprint(stored.Class, e.ErrorClass, e.ErrorMessage), Class: stored.Class, ErrorClass: e.ErrorClass}}
	f.mu.Lock()
	defer f.mu.Unlock()
	if same := f.failures[what.Fingerprint]; same != nil {
		what = same
	} else {
		line, _, _ := strings.Cut(strings.TrimSpace(e.ErrorMessage), "\n")
		what.Message, what.example = wire.Normalised(e.ErrorMessage), wire.Shorten(strings.TrimSpace(line), maxExample)
	}
	f.put(key, what)
	return what, true, nil
}

// named returns the error with a fingerprint, also if no entry with it is left. It returns nil if
// no request has read such an entry.
func (f *fingerprints) named(fingerprint string) *answer.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	if what := f.failures[fingerprint]; what != nil {
		return &what.Failure
	}
	return nil
}

func (f *fingerprints) has(stream string, r *tracker.Row) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, known := f.get(f.key(stream, r))
	return known
}

func (f *fingerprints) key(stream string, r *tracker.Row) entryKey {
	return entryKey{stream, r.Offset, maphash.String(f.seed, r.JID)}
}

func (f *fingerprints) get(key entryKey) (*failure, bool) {
	what, known := f.known[key]
	if !known {
		if what, known = f.old[key]; known {
			f.put(key, what)
		}
	}
	return what, known
}

// put keeps an entry. Those that were not asked for in a long time are still in old, and removed.
func (f *fingerprints) put(key entryKey, what *failure) {
	if len(f.known) >= maxFingerprints {
		f.old, f.known = f.known, map[entryKey]*failure{}
		f.failures = map[string]*failure{}
	}
	f.known[key], f.failures[what.Fingerprint] = what, what
}
