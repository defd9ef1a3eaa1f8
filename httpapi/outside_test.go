package httpapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/httpapi"
	"github.com/millrace-jobs/millrace/httpapi/auth"
)

func TestCORSAllowsOnlyListedOrigins(t *testing.T) {
	const ops = "https://ops.example"
	w := newSecured(t, func(c *httpapi.Config) { c.CORSOrigins = []string{ops} })
	ask := func(method, origin string, more ...string) answer {
		r := request(method, "/api/retries/a", "")
		r.SetBasicAuth("management", "right")
		r.Header.Set("Origin", origin)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		for i := 0; i < len(more); i += 2 {
			r.Header.Set(more[i], more[i+1])
		}
		return w.send(r)
	}
	a := ask(http.MethodDelete, ops)
	require.Equal(t, http.StatusNoContent, a.StatusCode)
	require.Equal(t, ops, a.Header.Get("Access-Control-Allow-Origin"))
	require.Equal(t, "true", a.Header.Get("Access-Control-Allow-Credentials"))
	require.Equal(t, "Origin", a.Header.Get("Vary"))
	a = ask(http.MethodOptions, ops, "Access-Control-Request-Method", "DELETE")
	require.Equal(t, http.StatusNoContent, a.StatusCode)
	require.Contains(t, a.Header.Get("Access-Control-Allow-Methods"), "DELETE")
	require.Contains(t, a.Header.Get("Access-Control-Allow-Headers"), "Authorization")
	require.Equal(t, "1800", a.Header.Get("Access-Control-Max-Age"))

	for _, other := range []string{"https://evil.example", "http://ops.example", "https://ops.example:8443", "null"} {
		ask(http.MethodDelete, other).problem(t, http.StatusForbidden, "access_refused")
		for _, method := range []string{http.MethodGet, http.MethodOptions} {
			a := ask(method, other, "Access-Control-Request-Method", "DELETE")
			require.Empty(t, a.Header.Get("Access-Control-Allow-Origin"), other)
			require.Equal(t, "Origin", a.Header.Get("Vary"))
		}
	}
	require.NoError(t, auth.CheckOrigins([]string{ops, "http://localhost:3000"}))
	for _, faulty := range []string{"*", "ops.example", "https://ops.example/", "https://ops.example/x", "ftp://ops.example", "null", "https://"} {
		require.Error(t, auth.CheckOrigins([]string{faulty}), faulty)
	}
}

func TestPrefix(t *testing.T) {
	w := newSecured(t)
	w.unchecked(func(c *httpapi.Config) { c.Prefix = "/mill/race" })
	w.add("retries", retry("a/b%", 2_000_000_000, "q", "C", "E"))
	require.Equal(t, http.StatusOK, w.as("monitoring", http.MethodGet, "/mill/race/api/retries/a%2Fb%25", "").StatusCode)
	require.Equal(t, http.StatusOK, w.get("/healthz").StatusCode)
	require.Equal(t, http.StatusOK, w.get("/mill/race/healthz").StatusCode)
	require.Equal(t, http.StatusUnauthorized, w.get("/metrics").StatusCode)
	for _, path := range []string{"/api/retries", "/mill/raceapi/retries", "/mill%2Frace/api/retries", "/other/healthz"} {
		w.as("monitoring", http.MethodGet, path, "").problem(t, http.StatusNotFound, "not_found")
	}
	require.Equal(t, "/mill/race/", w.get("/mill/race").Header.Get("Location"))
	require.Equal(t, "/mill/race/dashboard", w.get("/mill/race/").Header.Get("Location"))
	require.Contains(t, w.get("/mill/race/retries").body, `<base href="/mill/race/">`)
	require.Contains(t, w.get("/mill/race/api/openapi.yaml").body, "servers: [{url: /mill/race/}]")
	a := w.do(http.MethodPost, "/mill/race/api/session", `{"name":"monitoring","password":"right"}`)
	require.Equal(t, "/mill/race/", a.Cookies()[0].Path)
	for prefix, ok := range map[string]bool{"": true, "/a": true, "/a/b.c": true, "a": false, "/a/": false, "/": false, "/a b": false, "//a": false, "/%2F": false} {
		require.Equal(t, ok, httpapi.CheckPrefix(prefix) == nil, prefix)
	}
}

func TestBehindProxy(t *testing.T) {
	w := newSecured(t, func(c *httpapi.Config) { c.BehindProxy, c.Hosts = true, []string{"jobs.example"} })
	r := request(http.MethodPost, "/api/session", `{"name":"monitoring","password":"right"}`)
	r.Host = "jobs.example"
	r.Header.Set("X-Forwarded-Proto", "https")
	require.True(t, w.send(r).Cookies()[0].Secure)
	for i := range 12 {
		r := request(http.MethodGet, "/api/retries", "")
		r.SetBasicAuth("monitoring", string(rune('a'+i)))
		r.Header.Set("X-Forwarded-For", "10.0.0.1, 192.0.2.7")
		w.send(r)
	}
	require.Contains(t, w.log.String(), `"from":"192.0.2.7"`)
	require.Equal(t, http.StatusUnauthorized, w.loginFrom("192.0.2.1", `{"name":"monitoring","password":"x"}`), "other users are not limited")

	bare := newSecured(t) // without a proxy these headers are ignored
	r = request(http.MethodPost, "/api/session", `{"name":"monitoring","password":"right"}`)
	r.Header.Set("X-Forwarded-Proto", "https")
	require.False(t, bare.send(r).Cookies()[0].Secure)
}

func TestRemoteConnectionsNeedAuthentication(t *testing.T) {
	for _, c := range []struct {
		exposure auth.Exposure
		ok       bool
	}{
		{auth.Exposure{}, false},
		{auth.Exposure{Auth: auth.ModeBroker}, false},
		{auth.Exposure{TLS: true}, true}, // remote clients are authenticated
		{auth.Exposure{Auth: auth.ModeToken, TLS: true}, true},
		{auth.Exposure{Auth: auth.ModeNone, TLS: true}, false},
		{auth.Exposure{BehindProxy: true}, true},
		{auth.Exposure{Auth: auth.ModeNone, BehindProxy: true}, true},
	} {
		l, err := auth.Listen(t.Context(), "0.0.0.0:0", c.exposure)
		if c.ok {
			require.NoError(t, err)
			require.NoError(t, l.Close())
			continue
		}
		require.ErrorIs(t, err, auth.ErrNotLocal, "%+v", c.exposure)
	}
}

// selfSigned writes a certificate for some names and its key.
func selfSigned(t *testing.T, dir string, serial int64, names ...string) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, DNSNames: names, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 5)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	raw, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw}), 0o600))
	pool = x509.NewCertPool()
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool.AddCert(cert)
	return certFile, keyFile, pool
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile, pool := selfSigned(t, dir, 1, "localhost", "jobs.example", "*.jobs.example")
	cfg, err := auth.LoadTLS(certFile, keyFile, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	w := newSecured(t, func(c *httpapi.Config) { c.TLS = cfg })
	url, stop := w.serve()
	defer func() { require.NoError(t, stop()) }()
	_, port, err := net.SplitHostPort(url[len("http://"):])
	require.NoError(t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "https://localhost:"+port+"/api/session", http.NoBody)
	require.NoError(t, err)
	r.SetBasicAuth("x", "y")
	response, err := transport.RoundTrip(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusBadRequest, response.StatusCode)

	for host, status := range map[string]int{"jobs.example": 200, "a.jobs.example": 200, "192.0.2.5": 200, "a.b.jobs.example": 403, "evil.example": 403} {
		r := request(http.MethodGet, "/healthz", "")
		r.Host = host
		require.Equal(t, status, w.send(r).StatusCode, host)
	}
	r = request(http.MethodPost, "/api/session", `{"name":"monitoring","password":"right"}`)
	r.TLS = &tls.ConnectionState{}
	require.True(t, w.send(r).Cookies()[0].Secure)

	_, err = auth.LoadTLS(certFile, filepath.Join(dir, "none"), nil)
	require.Error(t, err)
	_, err = auth.LoadTLS(filepath.Join(dir, "none"), keyFile, nil)
	require.Error(t, err)
}
