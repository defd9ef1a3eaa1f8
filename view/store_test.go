package view

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

func put(t *testing.T, s *Store, pairs ...string) {
	t.Helper()
	require.NoError(t, s.Update(func(tx *Tx) error {
		for i := 0; i < len(pairs); i += 2 {
			if err := tx.Set([]byte(pairs[i]), []byte(pairs[i+1])); err != nil {
				return err
			}
		}
		return nil
	}))
}

func keys(t *testing.T, r Reader, lower, upper string, reverse bool, limit int) (found []string) {
	t.Helper()
	require.NoError(t, r.Scan([]byte(lower), []byte(upper), reverse, func(k, v []byte) bool {
		found = append(found, string(k)+"="+string(v))
		limit--
		return limit != 0
	}))
	return found
}

func has(t *testing.T, r Reader, key string) (string, bool) {
	t.Helper()
	v, ok, err := r.Get([]byte(key))
	require.NoError(t, err)
	return string(v), ok
}

func TestStoreReadsWhatWasWritten(t *testing.T) {
	s := memoryStore(t)
	put(t, s, "a", "1", "b", "2", "c", "3", "d", "")
	v, ok := has(t, s, "b")
	require.True(t, ok)
	require.Equal(t, "2", v)
	v, ok = has(t, s, "d")
	require.True(t, ok, "an empty value is a value")
	require.Empty(t, v)
	_, ok = has(t, s, "e")
	require.False(t, ok)
	require.Equal(t, []string{"a=1", "b=2", "c=3"}, keys(t, s, "a", "d", false, 0))
	require.Equal(t, []string{"c=3", "b=2", "a=1"}, keys(t, s, "a", "d", true, 0))
	require.Equal(t, []string{"b=2"}, keys(t, s, "aa", "d", false, 1))
	require.Equal(t, []string{"c=3"}, keys(t, s, "aa", "d", true, 1))
	require.Empty(t, keys(t, s, "x", "z", true, 0))
}

// Several reads from a Snapshot see the store as it was at that moment.
func TestSnapshotDoesNotChange(t *testing.T) {
	s := memoryStore(t)
	put(t, s, "a", "1", "b", "1")
	m := s.Snapshot()
	put(t, s, "a", "2", "c", "2")
	require.NoError(t, s.Update(func(tx *Tx) error { return tx.Delete([]byte("b")) }))
	for range 2 {
		require.Equal(t, []string{"a=1"}, keys(t, m, "a", "b", false, -1))
		require.Equal(t, []string{"b=1"}, keys(t, m, "a", "d", true, 1))
		value, ok := has(t, m, "b")
		require.True(t, ok)
		require.Equal(t, "1", value)
		_, ok = has(t, m, "c")
		require.False(t, ok)
	}
	require.NoError(t, m.Close())
	require.Equal(t, []string{"a=2", "c=2"}, keys(t, s, "a", "d", false, -1))
}

func TestTransactionsAreAtomic(t *testing.T) {
	s := memoryStore(t)
	put(t, s, "a", "1", "b", "2", "c", "3")
	var called []string
	refused := errors.New("refused")
	err := s.Update(func(tx *Tx) error {
		tx.AfterCommit(func() { called = append(called, "never") })
		require.NoError(t, tx.Set([]byte("a"), []byte("x")))
		require.NoError(t, tx.Delete([]byte("b")))
		require.NoError(t, tx.DeleteRange([]byte("c"), []byte("d")))
		v, _ := has(t, tx, "a")
		require.Equal(t, "x", v, "a transaction reads what it wrote")
		require.Equal(t, []string{"a=x"}, keys(t, tx, "a", "z", false, 0))
		outside, _ := has(t, s, "a")
		require.Equal(t, "1", outside, "other readers do not see it")
		return refused
	})
	require.ErrorIs(t, err, refused)
	require.Empty(t, called)
	require.Equal(t, []string{"a=1", "b=2", "c=3"}, keys(t, s, "a", "z", false, 0))

	require.NoError(t, s.Update(func(tx *Tx) error {
		for _, name := range []string{"first", "second"} {
			tx.AfterCommit(func() {
				v, _ := has(t, s, "a")
				called = append(called, name+" "+v)
			})
		}
		return tx.Set([]byte("a"), []byte("y"))
	}))
	require.Equal(t, []string{"first y", "second y"}, called, "the functions run after the commit, in order")
}

func TestStoreOpensAgain(t *testing.T) {
	cfg := Config{Dir: filepath.Join(t.TempDir(), "several", "new", "folders"), Identity: "broker/vhost", Schema: 3}
	s := openStore(t, cfg)
	put(t, s, "a", "1")
	require.NoError(t, s.Flush())
	put(t, s, "b", "2")
	require.NoError(t, s.Close())
	s = openStore(t, cfg)
	require.Equal(t, []string{"a=1", "b=2"}, keys(t, s, "a", "z", false, 0))
	require.NoError(t, s.Close())
}

// A store that does not fit is emptied, because it is a cache.
func TestMismatchedStoreIsEmptied(t *testing.T) {
	corrupt := func(pattern string, how func(path string) error) func(*testing.T, *Config) {
		return func(t *testing.T, cfg *Config) {
			found, err := filepath.Glob(filepath.Join(cfg.Dir, pattern))
			require.NoError(t, err)
			require.NotEmpty(t, found)
			for _, path := range found {
				require.NoError(t, how(path))
			}
		}
	}
	scribble := func(path string) error { return os.WriteFile(path, []byte("scribble"), 0o600) }
	for name, change := range map[string]func(*testing.T, *Config){
		"another broker or vhost": func(_ *testing.T, cfg *Config) { cfg.Identity = "other" },
		"another schema":          func(_ *testing.T, cfg *Config) { cfg.Schema++ },
		"another schema, alike":   func(_ *testing.T, cfg *Config) { cfg.Schema, cfg.Identity = 1, "1 vhost" },
		"manifest scribbled over": corrupt("MANIFEST*", scribble),
		"manifest gone":           corrupt("MANIFEST*", os.Remove),
		"a table gone":            corrupt("*.sst", os.Remove),
		"a table scribbled over":  corrupt("*.sst", scribble),
		"condemned": func(t *testing.T, cfg *Config) {
			s := openStore(t, *cfg)
			require.NoError(t, s.MarkForRebuild())
			require.NoError(t, s.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Dir: filepath.Join(t.TempDir(), "view"), Identity: "vhost", Schema: 1}
			s := openStore(t, cfg)
			put(t, s, "a", "1")
			require.NoError(t, s.Close())
			change(t, &cfg)
			s = openStore(t, cfg)
			_, ok := has(t, s, "a")
			require.False(t, ok)
			put(t, s, "b", "2")
			require.NoError(t, s.Close())
			s = openStore(t, cfg)
			require.Equal(t, []string{"b=2"}, keys(t, s, "a", "z", false, 0))
			require.NoError(t, s.Close())
		})
	}
}

func TestStoreThatCannotBeOpened(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	for name, dir := range map[string]string{"a file": file, "below a file": filepath.Join(file, "below")} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(Config{Dir: dir, Log: logTo(t)})
			require.EqualError(t, err, "view: cannot open the state directory "+dir+": mkdir "+file+": not a directory; set --state-dir to a directory")
		})
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "mine", string(kept))
}

// A store that this process may not open is left unchanged.
func TestStoreOfAnotherUser(t *testing.T) {
	cfg := Config{Dir: filepath.Join(t.TempDir(), "view")}
	s := openStore(t, cfg)
	put(t, s, "a", "1")
	require.NoError(t, s.Close())

	require.NoError(t, os.Chmod(cfg.Dir, 0))
	command := []string{os.Args[0]}
	if os.Geteuid() == 0 { // root opens everything, unless it gives up this privilege
		command = []string{"setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search", os.Args[0]}
	}
	other := exec.CommandContext(t.Context(), command[0], command[1:]...)
	other.Env = append(os.Environ(), holdDir+"="+cfg.Dir)
	said, err := other.Output()
	require.NoError(t, os.Chmod(cfg.Dir, 0o700))
	require.Error(t, err)
	require.Contains(t, string(said), "view: cannot open the state directory "+cfg.Dir+": ")
	require.Contains(t, string(said), "permission denied; run as the user that owns it, or set --state-dir")

	s = openStore(t, cfg)
	require.Equal(t, []string{"a=1"}, keys(t, s, "a", "z", false, 0))
	require.NoError(t, s.Close())
}

func TestStoresInMemoryAreSeparate(t *testing.T) {
	a, b := memoryStore(t), memoryStore(t)
	put(t, a, "x", "1")
	_, ok := has(t, b, "x")
	require.False(t, ok)
}

// holdDir makes this test binary hold a store open, as another process.
const holdDir = "MILLRACE_TEST_HOLD_DIR"

func holdStore(dir string) {
	s, err := Open(Config{Dir: dir, Cache: 1 << 20})
	fmt.Println(err)
	_, _ = io.ReadAll(os.Stdin)
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func TestStoreInUse(t *testing.T) {
	t.Run("by this process", func(t *testing.T) {
		cfg := Config{Dir: t.TempDir()}
		s := openStore(t, cfg)
		put(t, s, "a", "1")
		requireInUse(t, cfg.Dir)
		require.NoError(t, s.Close())
		s = openStore(t, cfg)
		require.Equal(t, []string{"a=1"}, keys(t, s, "a", "z", false, 0), "the second process has not emptied the store")
		require.NoError(t, s.Close())
	})
	t.Run("by another process", func(t *testing.T) {
		dir := t.TempDir()
		other := exec.CommandContext(t.Context(), os.Args[0])
		other.Env = append(os.Environ(), holdDir+"="+dir)
		stdin, err := other.StdinPipe()
		require.NoError(t, err)
		stdout, err := other.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, other.Start())
		opened, err := bufio.NewReader(stdout).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "<nil>", strings.TrimSpace(opened))
		requireInUse(t, dir)
		require.NoError(t, stdin.Close())
		require.NoError(t, other.Wait())
		require.NoError(t, openStore(t, Config{Dir: dir}).Close())
	})
}

func requireInUse(t *testing.T, dir string) {
	t.Helper()
	_, err := Open(Config{Dir: dir, Log: logTo(t)})
	require.ErrorIs(t, err, errInUse)
	require.ErrorContains(t, err, dir)
}

func TestQuietLogger(t *testing.T) {
	quiet{}.Infof("x")
	quiet{}.Errorf("x")
	require.PanicsWithValue(t, "view: store: broken 7", func() { quiet{}.Fatalf("broken %d", 7) })
}

// failing is a fold that fails at one record.
type failing struct{ at string }

var errFailing = errors.New("fails here")

func (f failing) Fold(_ *Tx, r *wire.Record) error {
	if string(r.Body) == f.at {
		return errFailing
	}
	return nil
}

func (failing) Commit(tx *Tx) error { return tx.Set([]byte("committed"), nil) }

// After a fold failed, nothing is written any more, because the fold's memory has data that was not
// written. That includes callers that waited for the store meanwhile.
func TestFailedFoldEndsWrites(t *testing.T) {
	s := memoryStore(t)
	apply := func(body string, guard error) error {
		records := []wire.Record{{Stream: "s", Body: []byte(body)}}
		return s.Apply(failing{"b"}, "s", records, func() error { return guard }, func([]string) {})
	}
	require.ErrorIs(t, apply("a", errRewound), errRewound)
	_, written := has(t, s, "committed")
	require.False(t, written)
	require.ErrorIs(t, apply("b", nil), errFailing)
	require.ErrorIs(t, apply("a", nil), errFailing)
	_, written = has(t, s, "committed")
	require.False(t, written)
}
