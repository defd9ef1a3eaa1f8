package httpapi

import (
	"hash/maphash"
	"strings"
	"sync"

	"github.com/millrace-jobs/millrace/tracker"
	"github.com/millrace-jobs/millrace/wire"
)

// fingerprints remembers what entries failed with. A record does not change, so that an entry is read once.
type fingerprints struct {
	seed maphash.Seed

	mu         sync.Mutex
	known, old map[entryKey]*failure
	failures   map[string]*failure
}

type entryKey struct {
	stream string
	offset int64
	jid    uint64 // a stream that was made anew has others there
}

// failure is what all entries with a fingerprint failed with; its message is without what changes from one time to the next, and example
// is the first line of the message of one of them.
type failure struct{ fingerprint, class, errorClass, message, example string }

const maxExample = 500 // bytes

// maxFingerprints is how many entries are remembered, at least; twice as many at most.
const maxFingerprints = 2 * maxSearched

func newFingerprints() *fingerprints {
	return &fingerprints{seed: maphash.MakeSeed(), known: map[entryKey]*failure{}, failures: map[string]*failure{}}
}

// of tells what an entry failed with. read is false if that would need its record from the stream, and nil is the answer too if it is gone.
func (f *fingerprints) of(entries *tracker.Entries, stream string, r *tracker.Row) (what *failure, read bool, err error) {
	key := f.key(stream, r)
	f.mu.Lock()
	what, known := f.look(key)
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
		return nil, true, nil // it was one when it was taken in
	}
	what = &failure{fingerprint: wire.Fingerprint(stored.Class, e.ErrorClass, e.ErrorMessage), class: stored.Class, errorClass: e.ErrorClass}
	f.mu.Lock()
	defer f.mu.Unlock()
	if same := f.failures[what.fingerprint]; same != nil {
		what = same
	} else {
		line, _, _ := strings.Cut(strings.TrimSpace(e.ErrorMessage), "\n")
		what.message, what.example = wire.Normalised(e.ErrorMessage), wire.Shorten(strings.TrimSpace(line), maxExample)
		f.failures[what.fingerprint] = what
	}
	f.keep(key, what)
	return what, true, nil
}

// has tells whether an entry is known.
func (f *fingerprints) has(stream string, r *tracker.Row) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, known := f.look(f.key(stream, r))
	return known
}

func (f *fingerprints) key(stream string, r *tracker.Row) entryKey {
	return entryKey{stream, r.Offset, maphash.String(f.seed, r.JID)}
}

func (f *fingerprints) look(key entryKey) (*failure, bool) {
	what, known := f.known[key]
	if !known {
		if what, known = f.old[key]; known {
			f.keep(key, what)
		}
	}
	return what, known
}

// keep forgets those that were not asked for in a long time: they are what is left in old when known is full.
func (f *fingerprints) keep(key entryKey, what *failure) {
	if len(f.known) >= maxFingerprints {
		f.old, f.known = f.known, map[entryKey]*failure{}
		f.failures = map[string]*failure{}
	}
	f.known[key] = what
}
