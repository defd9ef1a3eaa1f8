package view

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Config says where a store lives and what it is a view of.
type Config struct {
	Dir      string // empty: in memory
	Identity string // broker and vhost; a store with another identity is emptied
	Schema   int    // version of what the fold writes; a store with another version is emptied
	Cache    int64  // bytes of block cache; default 96 MiB
	Log      *slog.Logger
}

// Store is an ordered key-value store. Keys beginning with a zero byte are the engine's own.
type Store struct {
	db    *pebble.DB
	cache *pebble.Cache
	write sync.Mutex // one transaction at a time
	ahead error      // why the fold knows what the store does not have

	checkpoints *checkpoints // to which it can be rolled back

	temporary string // a folder that goes when the store is closed
}

var keyIdentity = []byte("\x00identity")

// Open opens the store, empty where it is of another identity or schema, or damaged. Where the folder cannot be used at all, Open fails
// and changes nothing.
func Open(cfg Config) (*Store, error) {
	s, err := open(cfg)
	if err == nil {
		err = s.claim(cfg)
		if err == nil {
			return s.begin(), nil
		}
		_ = s.db.Close()
		s.cache.Unref()
	}
	if cfg.Dir == "" || errors.Is(err, errInUse) || isUnusable(err) {
		return nil, openError(cfg.Dir, err)
	}
	cfg.Log.Warn("view: the state directory is emptied, and the view rebuilt", "dir", cfg.Dir, "reason", err)
	if err := os.RemoveAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("view: empty the state directory: %w", err)
	}
	if s, err = open(cfg); err != nil {
		return nil, openError(cfg.Dir, err)
	}
	if err := s.claim(cfg); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s.begin(), nil
}

// begin has checkpoints taken from here on.
func (s *Store) begin() *Store {
	s.checkpoints = &checkpoints{db: s.db, every: checkpointEvery}
	return s
}

var (
	errInUse   = errors.New("it is in use by another process")
	errForeign = errors.New("it belongs to another broker, virtual host or version")
)

// isUnusable reports whether the operating system refuses the use of a folder. Any other error says that the store in it is damaged, as
// one of which a file is missing, or that it is another one.
func isUnusable(err error) bool {
	var refusal syscall.Errno
	return errors.Is(err, fs.ErrPermission) || errors.As(err, &refusal) && refusal != syscall.ENOENT
}

// openError says why a store cannot be opened, and what to do.
func openError(dir string, err error) error {
	if dir == "" {
		return fmt.Errorf("view: open a store in memory: %w", err)
	}
	remedy := ""
	switch {
	case errors.Is(err, errInUse):
		remedy = "; give each sidecar a --state-dir of its own"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		remedy = "; run as the user that owns it, or set --state-dir to a directory that this user may write"
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EEXIST):
		remedy = "; set --state-dir to a directory"
	}
	return fmt.Errorf("view: cannot open the state directory %s: %w%s", dir, err, remedy)
}

func open(cfg Config) (*Store, error) {
	if cfg.Cache == 0 {
		cfg.Cache = 96 << 20
	}
	cache := pebble.NewCache(cfg.Cache)
	// Small memtables have everything written again and again when a view is made anew. Two of them count as cache.
	options := &pebble.Options{
		Cache: cache, DisableWAL: true, MemTableSize: 32 << 20, Logger: quiet{},
		FormatMajorVersion: pebble.FormatNewest,
		FS:                 vfs.Default, // Pebble's own choice leaves a goroutine behind when a damaged store is opened
	}
	for i := range options.Levels {
		options.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	dir := cfg.Dir
	if dir == "" {
		options.FS = vfs.NewMem()
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		cache.Unref()
		return nil, err
	}
	db, err := pebble.Open(dir, options)
	if err != nil {
		cache.Unref()
		if isLocked(err) {
			return nil, errInUse
		}
		return nil, err
	}
	return &Store{db: db, cache: cache}, nil
}

// claim writes the identity into an empty store and compares it in another.
func (s *Store) claim(cfg Config) error {
	want := fmt.Appendf(nil, "%d %s", cfg.Schema, cfg.Identity)
	return s.Update(func(tx *Tx) error {
		have, ok, err := tx.Get(keyIdentity)
		if err != nil {
			return err
		}
		if ok && !bytes.Equal(have, want) {
			return fmt.Errorf("%w: it has %q, this is %q", errForeign, have, want)
		}
		return tx.Set(keyIdentity, want)
	})
}

// Condemn has the store emptied when it is opened next.
func (s *Store) Condemn() error {
	return s.Update(func(tx *Tx) error { return tx.Set(keyIdentity, []byte("condemned")) })
}

// Close writes what is in memory and closes the store.
func (s *Store) Close() error {
	s.write.Lock()
	defer s.write.Unlock()
	err := errors.Join(s.checkpoints.drop(0), s.db.Flush(), s.db.Close())
	s.cache.Unref()
	if s.temporary != "" {
		err = errors.Join(err, os.RemoveAll(s.temporary))
	}
	if err != nil {
		return fmt.Errorf("view: close store: %w", err)
	}
	return nil
}

// Flush writes what is in memory to disk, so that a crash has less to read again.
func (s *Store) Flush() error {
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("view: flush store: %w", err)
	}
	return nil
}

// Update runs fn in a transaction; what it wrote is kept if it returns nil.
func (s *Store) Update(fn func(*Tx) error) error {
	s.write.Lock()
	defer s.write.Unlock()
	s.checkpoints.take(time.Now())
	batch := s.db.NewIndexedBatch()
	defer func() { _ = batch.Close() }()
	tx := &Tx{batch: batch}
	if err := fn(tx); err != nil {
		return err
	}
	s.checkpoints.note(batch)
	if err := batch.Commit(pebble.NoSync); err != nil {
		s.ahead = fmt.Errorf("view: commit: %w", err)
		return s.ahead
	}
	for _, fn := range tx.after {
		fn()
	}
	return nil
}

// Get reads one key.
func (s *Store) Get(key []byte) ([]byte, bool, error) { return get(s.db, key) }

// Scan calls fn for the keys from lower up to but not upper, backwards if reverse, until fn returns false. Key and value are valid
// only during the call.
func (s *Store) Scan(lower, upper []byte, reverse bool, fn func(key, value []byte) bool) error {
	return scan(s.db, lower, upper, reverse, fn)
}

// Reader reads a store, what it was at one moment, or a transaction and the store below it.
type Reader interface {
	Get(key []byte) ([]byte, bool, error)
	Scan(lower, upper []byte, reverse bool, fn func(key, value []byte) bool) error
}

// Tx is a transaction: it reads what it wrote.
type Tx struct {
	batch   *pebble.Batch
	rewound []string
	held    map[string]bool
	after   []func()

	positions map[string]int64 // that were asked for
}

// AfterCommit has fn called once what the transaction wrote can be read, and before the next one begins: whoever is told by fn finds it.
func (tx *Tx) AfterCommit(fn func()) { tx.after = append(tx.after, fn) }

// Get reads one key.
func (tx *Tx) Get(key []byte) ([]byte, bool, error) { return get(tx.batch, key) }

// Scan is Store.Scan within the transaction.
func (tx *Tx) Scan(lower, upper []byte, reverse bool, fn func(key, value []byte) bool) error {
	return scan(tx.batch, lower, upper, reverse, fn)
}

// Set writes one key.
func (tx *Tx) Set(key, value []byte) error { return tx.batch.Set(key, value, nil) }

// Delete removes one key.
func (tx *Tx) Delete(key []byte) error { return tx.batch.Delete(key, nil) }

// DeleteRange removes the keys from lower up to but not upper.
func (tx *Tx) DeleteRange(lower, upper []byte) error { return tx.batch.DeleteRange(lower, upper, nil) }

func get(r pebble.Reader, key []byte) ([]byte, bool, error) {
	value, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("view: get: %w", err)
	}
	defer closeQuietly(closer)
	return bytes.Clone(value), true, nil
}

func scan(r pebble.Reader, lower, upper []byte, reverse bool, fn func(key, value []byte) bool) error {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return fmt.Errorf("view: scan: %w", err)
	}
	step, ok := it.Next, false
	if reverse {
		step, ok = it.Prev, it.Last()
	} else {
		ok = it.First()
	}
	for ; ok; ok = step() {
		if !fn(it.Key(), it.Value()) {
			break
		}
	}
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return fmt.Errorf("view: scan: %w", err)
	}
	return nil
}

func closeQuietly(c io.Closer) { _ = c.Close() }

// quiet drops Pebble's own chatter; its errors come back from the calls.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf("view: store: "+format, args...))
}
