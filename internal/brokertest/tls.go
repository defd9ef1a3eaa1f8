package brokertest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Certificate is a certificate for TLS servers, made by the tests.
type Certificate struct {
	File    string // PEM file with the certificate
	KeyFile string // PEM file with its key

	roots *x509.CertPool
	tls   tls.Certificate
}

// NewCertificate creates a certificate for DNS names and IP addresses.
func NewCertificate(t testing.TB, names ...string) *Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: names[0]}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	folder := t.TempDir()
	c := &Certificate{roots: x509.NewCertPool(), File: filepath.Join(folder, "certificate.pem"), KeyFile: filepath.Join(folder, "key.pem")}
	c.roots.AddCert(parsed)
	c.tls = tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	require.NoError(t, os.WriteFile(c.File, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(c.KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return c
}

// Config returns a configuration that trusts the certificate.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{RootCAs: c.roots, MinVersion: tls.VersionTLS12}
}

// ClientConfig returns a configuration that trusts the certificate, and presents it to a server
// that requires one.
func (c *Certificate) ClientConfig() *tls.Config {
	config := c.Config()
	config.Certificates = []tls.Certificate{c.tls}
	return config
}

// Front puts a TLS server on 127.0.0.1 before a URL of the broker. It returns the URL of the TLS
// server, with another scheme.
func (c *Certificate) Front(t testing.TB, upstream, scheme string) string {
	t.Helper()
	return front(t, upstream, scheme, &tls.Config{Certificates: []tls.Certificate{c.tls}, MinVersion: tls.VersionTLS12})
}

// FrontForClientsWith is a Front that refuses clients without a certificate that client has signed.
func (c *Certificate) FrontForClientsWith(t testing.TB, client *Certificate, upstream, scheme string) string {
	t.Helper()
	return front(t, upstream, scheme, &tls.Config{
		Certificates: []tls.Certificate{c.tls}, MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: client.roots,
	})
}

func front(t testing.TB, upstream, scheme string, config *tls.Config) string {
	t.Helper()
	u, err := url.Parse(upstream)
	require.NoError(t, err)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(t, err)
	var serving sync.WaitGroup
	target := u.Host
	serving.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { join(client, target) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		serving.Wait()
	})
	u.Scheme, u.Host = scheme, listener.Addr().String()
	return u.String()
}

// join copies in both directions until either side closes.
func join(client net.Conn, target string) {
	defer client.Close()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	var copying sync.WaitGroup
	copying.Go(func() {
		defer client.Close()
		_, _ = io.Copy(client, server)
	})
	_, _ = io.Copy(server, client)
	server.Close()
	copying.Wait()
}
