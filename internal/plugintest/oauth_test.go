//go:build plugin

package plugintest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/localbroker"
)

// TestOAuth2 signs users in with tokens of an authorization server, which RabbitMQ checks.
func TestOAuth2(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o600))
	e := extension(t, "millrace.vhosts.1 = /\nauth_backends.1 = internal\nauth_backends.2 = rabbit_auth_backend_oauth2\n"+
		"auth_oauth2.resource_server_id = rabbitmq\nauth_oauth2.default_key = k\nauth_oauth2.signing_keys.k = "+localbroker.FilesDir+"/key.pem\n")
	e.Files, e.Plugins = append(e.Files, file), append(e.Plugins, "rabbitmq_auth_backend_oauth2")
	n := startWith(t, e)
	n.await(t, "/")
	token := func(scope string, lasting time.Duration) string {
		return signToken(t, key, map[string]any{"sub": "ann", "aud": "rabbitmq", "scope": scope, "exp": time.Now().Add(lasting).Unix()})
	}
	as := func(method, path, token string) answer {
		r := n.request(t, method, path, nothing, http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		return send(t, r)
	}
	const manager = "rabbitmq.tag:management rabbitmq.read:%2F/*"
	a := as(http.MethodGet, root+"/api/whoami", token(manager, time.Hour))
	require.Equal(t, http.StatusOK, a.status, a.body)
	require.Equal(t, "management", a.get("role").String())
	require.Len(t, as(http.MethodGet, "/api/millrace-status", token(manager, time.Hour)).get("vhosts").Array(), 1)
	require.Equal(t, http.StatusForbidden, as(http.MethodGet, root+"/api/overview", token("rabbitmq.tag:management rabbitmq.read:other/*", time.Hour)).status)
	require.Equal(t, http.StatusUnauthorized, as(http.MethodGet, root+"/api/overview", token("rabbitmq.read:%2F/*", time.Hour)).status)
	require.Equal(t, http.StatusUnauthorized, as(http.MethodGet, root+"/api/overview", token(manager, -time.Minute)).status)

	const lasts = 10 * time.Second
	begun := as(http.MethodPost, "/api/millrace-session", token(manager, lasts))
	require.Equal(t, http.StatusNoContent, begun.status, begun.body)
	cookie, err := http.ParseSetCookie(begun.header.Get("Set-Cookie"))
	require.NoError(t, err)
	browser := func() answer {
		r := n.request(t, http.MethodGet, root+"/api/whoami", nothing, http.NoBody)
		r.AddCookie(&http.Cookie{Name: cookie.Name, Value: cookie.Value})
		return send(t, r)
	}
	require.Equal(t, http.StatusOK, browser().status)
	n.eventually(t, func() bool { return browser().status == http.StatusUnauthorized }, "the session ends with its token")
}

// signToken returns a JSON Web Token (RS256).
func signToken(t *testing.T, key *rsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(map[string]string{"alg": "RS256", "typ": "JWT", "kid": "k"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	require.NoError(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}
