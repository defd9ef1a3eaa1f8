package view

import (
	"log/slog"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdDir); dir != "" {
		holdStore(dir)
	}
	goleak.VerifyTestMain(m)
}

func logTo(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func openStore(t testing.TB, cfg Config) *Store {
	t.Helper()
	cfg.Log = logTo(t)
	if cfg.Cache == 0 {
		cfg.Cache = 1 << 20
	}
	s, err := Open(cfg)
	require.NoError(t, err)
	return s
}

// memoryStore returns a store that is closed at the end of the test.
func memoryStore(t testing.TB) *Store {
	t.Helper()
	s := openStore(t, Config{})
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}
