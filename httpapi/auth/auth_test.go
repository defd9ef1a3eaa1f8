package auth

import (
	"bytes"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLoginLimiterIsBounded(t *testing.T) {
	a, now := newLoginLimiter(), time.Unix(0, 0)
	for i := range 3 * maxLimiters {
		now = now.Add(time.Millisecond)
		a.fail(big.NewInt(int64(i)).String(), "x", now, false)
		require.LessOrEqual(t, len(a.failed), maxLimiters+1)
	}
	require.Equal(t, "192.0.2.1", block("::ffff:192.0.2.1"))
	require.Equal(t, "2001:db8::/64", block("2001:db8::1%eth0"))
	require.Equal(t, "::1", block("::1"))
	require.Equal(t, "@", block("@"))
}

func TestCredentialCacheIsBounded(t *testing.T) {
	k := newCredentialCache(nil, time.Now)
	for i := range 3 * maxCached {
		var err error
		if i%3 == 0 {
			err = ErrWrongPassword
		}
		_ = k.remember(k.digest(big.NewInt(int64(i)).String(), "x"), User{}, err)
		require.LessOrEqual(t, len(k.answers), maxCached)
	}
}

func TestCertificateIsReloaded(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "cert")
	require.NoError(t, os.WriteFile(file, []byte("garbage"), 0o600))
	var log bytes.Buffer
	c := &certificate{certFile: file, keyFile: file, log: slog.New(slog.NewTextHandler(&log, nil))}
	require.Nil(t, c.get(), "the old one stays")
	require.Contains(t, log.String(), "the old one stays")
	require.Nil(t, c.get())
}
