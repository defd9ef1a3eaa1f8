package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi/problem"
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

var headerKey = []byte("0123456789abcdef0123456789abcdef")

// signed returns a request with a signed header, at a time in seconds.
func signed(at int64, method, target string) *http.Request {
	r := httptest.NewRequest(method, target, http.NoBody)
	r.Header.Set(SignedHeader, signHeader(headerKey, time.Unix(at, 0), method, target, "änn", []string{"management", "x"}))
	return r
}

func TestSignedHeader(t *testing.T) {
	s := &signer{headerKey, func() time.Time { return time.Unix(1000, 0) }}
	p, err := s.find(signed(1000, "GET", "/v/api/retries?limit=1"), headerAge)
	require.NoError(t, err)
	require.Equal(t, Principal{Name: "änn", Role: Management, Via: "header"}, p)
	_, err = s.find(signed(970, "GET", "/"), headerAge)
	require.NoError(t, err, "the limit of its age")
	_, err = s.find(signed(1030, "GET", "/"), headerAge)
	require.NoError(t, err, "the proxy's clock is ahead")
	_, err = s.find(signed(900, "GET", "/"), eventsAge)
	require.NoError(t, err, "events are sent for longer")

	r := signed(1000, "GET", "/")
	const known = "1.1000.w6Rubg==.bWFuYWdlbWVudCx4."
	require.Contains(t, r.Header.Get(SignedHeader), known, "the plugin for RabbitMQ makes the same bytes")
}

func TestSignedHeaderIsRefused(t *testing.T) {
	changed := func(change func(r *http.Request)) *http.Request {
		r := signed(1000, "GET", "/api/retries?limit=1")
		change(r)
		return r
	}
	replaced := func(part int, value string) func(r *http.Request) {
		return func(r *http.Request) {
			parts := strings.Split(r.Header.Get(SignedHeader), ".")
			parts[part] = value
			r.Header.Set(SignedHeader, strings.Join(parts, "."))
		}
	}
	for name, r := range map[string]*http.Request{
		"too old":          signed(969, "GET", "/"),
		"from the future":  signed(1031, "GET", "/"),
		"another method":   changed(func(r *http.Request) { r.Method = "POST" }),
		"another target":   changed(func(r *http.Request) { r.RequestURI = "/api/retries?limit=2" }),
		"without a query":  changed(func(r *http.Request) { r.RequestURI = "/api/retries" }),
		"another version":  changed(replaced(0, "2")),
		"another time":     changed(replaced(1, "1001")),
		"another name":     changed(replaced(2, "Ym9i")),
		"other tags":       changed(replaced(3, "YWRtaW5pc3RyYXRvcg==")),
		"another sum":      changed(replaced(4, strings.Repeat("0", 64))),
		"no sum":           changed(replaced(4, "")),
		"a sum in letters": changed(replaced(4, "x")),
		"twice":            changed(func(r *http.Request) { r.Header.Add(SignedHeader, r.Header.Get(SignedHeader)) }),
		"a name alone":     changed(func(r *http.Request) { r.Header.Set(SignedHeader, "ann") }),
		"no header":        changed(func(r *http.Request) { r.Header.Del(SignedHeader) }),
	} {
		s := &signer{headerKey, func() time.Time { return time.Unix(1000, 0) }}
		_, err := s.find(r, headerAge)
		require.ErrorIs(t, err, errSignature, name)
	}
	for _, key := range [][]byte{nil, headerKey[:31], []byte("0123456789abcdef0123456789abcdeg")} {
		s := &signer{key, func() time.Time { return time.Unix(1000, 0) }}
		_, err := s.find(signed(1000, "GET", "/"), headerAge)
		require.ErrorIs(t, err, errSignature, "a short key, and another one")
	}
	short := headerKey[:8]
	r := httptest.NewRequest("GET", "/", http.NoBody)
	r.Header.Set(SignedHeader, signHeader(short, time.Unix(1000, 0), "GET", "/", "ann", nil))
	_, err := (&signer{short, func() time.Time { return time.Unix(1000, 0) }}).find(r, headerAge)
	require.ErrorIs(t, err, errSignature, "a valid signature with a short key")
}

// Only the signature counts: no password, token or session opens an API whose users a proxy knows.
func TestSignedHeaderIsTheOnlySignIn(t *testing.T) {
	a := New(Config{Mode: ModeHeader, HeaderKey: headerKey, Now: func() time.Time { return time.Unix(1000, 0) }, Log: slog.New(slog.DiscardHandler)})
	r := signed(1000, "GET", "/")
	r.SetBasicAuth("guest", "guest")
	p, err := a.identify(r)
	require.NoError(t, err)
	require.Equal(t, "änn", p.Name)
	r = httptest.NewRequest("GET", "/", http.NoBody)
	r.SetBasicAuth("guest", "guest")
	r.AddCookie(&http.Cookie{Name: sessionCookie, Value: a.seal.close(session{Auth: ModeHeader, Name: "guest", Ends: 2000})})
	_, err = a.identify(r)
	require.Equal(t, http.StatusUnauthorized, problem.From(err).Status)
	_, _, err = a.SignIn(r, Credentials{Name: "guest", Password: "guest"})
	require.Equal(t, http.StatusUnauthorized, problem.From(err).Status)
	_, _, err = a.SignIn(r, Credentials{Token: "x"})
	require.Equal(t, http.StatusUnauthorized, problem.From(err).Status)

	require.True(t, a.MayStillRead(signed(200, "GET", "/")))
	require.False(t, a.MayStillRead(signed(99, "GET", "/")), "a browser connects again, and the proxy signs again")
}

// signHeader returns the header's value for a user's request, as a proxy sends it. The target is
// the path with the query, as in the request line.
func signHeader(key []byte, now time.Time, method, target, name string, tags []string) string {
	parts := []string{
		strconv.FormatInt(now.Unix(), 10),
		base64.StdEncoding.EncodeToString([]byte(name)),
		base64.StdEncoding.EncodeToString([]byte(strings.Join(tags, ","))),
	}
	s := signer{key: key}
	sum := s.sum(&http.Request{Method: method, RequestURI: target}, parts)
	return strings.Join([]string{headerVersion, parts[0], parts[1], parts[2], hex.EncodeToString(sum)}, ".")
}
