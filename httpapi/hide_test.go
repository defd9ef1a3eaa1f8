package httpapi

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// secretless tells whether no member with a name that matches has another value than the sign.
func secretless(names *regexp.Regexp, v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			if names.MatchString(name) && value != "[hidden]" || !secretless(names, value) {
				return false
			}
		}
	case []any:
		for _, value := range v {
			if !secretless(names, value) {
				return false
			}
		}
	}
	return true
}

func FuzzHidden(f *testing.F) {
	for _, seed := range []string{
		`{"job":{"args":[{"password":"x"},{"a":{"token":[1,2]}}]}}`, ` { "secret" : 1 } `, `[{"pass\u0077ord":"x"}]`, `{"a":"\"password\":1"}`, `"password"`, `null`,
		`{"secret":{"secret":1},"secret":2}`, `{"token":}`, "\n[[[{\"TOKEN\":null}]]]", `{"a":1e400,"cookie":"é\ud800"}`,
	} {
		f.Add([]byte(seed))
	}
	names, err := ParseHideArgs(DefaultHideArgs)
	require.NoError(f, err)
	h := &hider{names}
	f.Fuzz(func(t *testing.T, raw []byte) {
		shown, hid := h.anything(raw)
		if !json.Valid(raw) {
			require.True(t, hid)
			require.Empty(t, shown)
			return
		}
		require.True(t, json.Valid(shown), "%s", shown)
		require.True(t, hid || bytes.Equal(raw, shown))
		d := json.NewDecoder(bytes.NewReader(shown))
		d.UseNumber()
		var v any
		require.NoError(t, d.Decode(&v))
		require.True(t, secretless(names, v), "%s", shown)
		again, _ := h.record(shown)
		require.Equal(t, string(shown), string(again))
	})
}

func TestAttemptsAreBounded(t *testing.T) {
	a, now := newAttempts(), time.Unix(0, 0)
	for i := range 3 * maxRemembered {
		now = now.Add(time.Millisecond)
		a.failed(big.NewInt(int64(i)).String(), "x", now, false)
		require.LessOrEqual(t, len(a.names), maxRemembered+1)
	}
	require.Equal(t, "192.0.2.1", blockOf("::ffff:192.0.2.1"))
	require.Equal(t, "2001:db8::/64", blockOf("2001:db8::1%eth0"))
	require.Equal(t, "::1", blockOf("::1"))
	require.Equal(t, "@", blockOf("@"))
}

func TestWhatIsKnownIsBounded(t *testing.T) {
	k := newKnown(nil, time.Now)
	for i := range 3 * maxKnown {
		var err error
		if i%3 == 0 {
			err = ErrWrongPassword
		}
		_ = k.remember(k.digest(big.NewInt(int64(i)).String(), "x"), User{}, err)
		require.LessOrEqual(t, len(k.said), maxKnown)
	}
}

func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "cert")
	require.NoError(t, os.WriteFile(file, []byte("garbage"), 0o600))
	var log bytes.Buffer
	c := &certificate{certFile: file, keyFile: file, log: slog.New(slog.NewTextHandler(&log, nil))}
	require.Nil(t, c.current(), "the old one stays")
	require.Contains(t, log.String(), "the old one stays")
	require.Nil(t, c.current())
}
