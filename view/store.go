package view

import (
	"bytes"
	"errors"
	"fmt"
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

// Config describes a store.
type Config struct {
	Dir      string // empty: in memory
	Identity string // broker and vhost; a store with another identity is emptied
	Schema   int    // version of the fold's data; a store with another version is emptied
	Cache    int64  // bytes of block cache; default 96 MiB
	Log      *slog.Logger
}

// Store is an ordered key-value store. Keys that begin with a zero byte belong to this package.
type Store struct {
	db    *pebble.DB
	cache *pebble.Cache
	write sync.Mutex // one transaction at a time
	ahead error      // why the fold's memory is ahead of the store

	checkpoints *checkpoints // for rolling back

	temporary string // directory that Close removes
}

// Open opens the store. It empties a store that is damaged, or that has another identity or schema.
// If the directory cannot be used at all, Open fails and changes nothing.
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

// begin starts taking checkpoints.
func (s *Store) begin() *Store {
	s.checkpoints = &checkpoints{db: s.db, every: checkpointEvery}
	return s
}

var (
	errInUse   = errors.New("it is in use by another process")
	errForeign = errors.New("it belongs to another broker, virtual host or version")
)

// isUnusable reports whether the operating system refuses the use of a directory. Any other error
// means that the store in it is damaged (for example, a file is missing), or is another one.
func isUnusable(err error) bool {
	var refusal syscall.Errno
	return errors.Is(err, fs.ErrPermission) || errors.As(err, &refusal) && refusal != syscall.ENOENT
}

// openError returns an error that says why the store cannot be opened, and what to do.
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
	// With small memtables, a rebuild writes all data again and again. Two memtables count as
	// cache.
	options := &pebble.Options{
		Cache: cache, DisableWAL: true, MemTableSize: 32 << 20, Logger: quiet{},
		FormatMajorVersion: pebble.FormatNewest,
		// Pebble's own choice leaves a goroutine behind when it opens a damaged store.
		FS: vfs.Default,
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

// claim writes the identity into an empty store, and compares it in any other.
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

// MarkForRebuild makes the next Open empty the store.
func (s *Store) MarkForRebuild() error {
	return s.Update(func(tx *Tx) error { return tx.Set(keyIdentity, []byte("condemned")) })
}

// Close writes the data in memory to disk and closes the store.
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

// Flush writes the data in memory to disk, so that less must be read again after a crash.
func (s *Store) Flush() error {
	if err := s.db.Flush(); err != nil {
		return fmt.Errorf("view: flush store: %w", err)
	}
	return nil
}

// Update runs fn in a transaction. It commits the transaction if fn returns nil.
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
	if err := s.checkpoints.note(batch); err != nil {
		return err
	}
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

// Scan calls fn for the keys from lower up to, but not including, upper, until fn returns false. If
// reverse is set, it goes backwards. key and value are valid only during the call.
func (s *Store) Scan(lower, upper []byte, reverse bool, fn func(key, value []byte) bool) error {
	return scan(s.db, lower, upper, reverse, fn)
}

// Tx is a transaction. It sees its own writes.
type Tx struct {
	batch   *pebble.Batch
	rewound []string
	held    map[string]bool
	after   []func()

	positions map[string]int64 // cached by Position
}

// AfterCommit calls fn when the writes of the transaction can be read, and before the next
// transaction begins. A reader that fn notifies finds them.
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

// DeleteRange removes the keys from lower up to, but not including, upper.
func (tx *Tx) DeleteRange(lower, upper []byte) error { return tx.batch.DeleteRange(lower, upper, nil) }

// quiet drops Pebble's log. The calls return its errors.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf("view: store: "+format, args...))
}
