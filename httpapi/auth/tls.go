package auth

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// checkCertificateEvery is how often the certificate's file is checked for a newer one, at most.
const checkCertificateEvery = 10 * time.Second

// certificate is read again when its file changes. A newer one that cannot be read leaves the old.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu       sync.Mutex
	checked  time.Time
	modified time.Time
	current  *tls.Certificate
}

// LoadTLS reads a certificate and its key.
func LoadTLS(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.read(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.get(), nil },
		NextProtos:     []string{"h2", "http/1.1"},
	}, nil
}

func (c *certificate) read() error {
	info, err := os.Stat(c.certFile)
	if err != nil {
		return fmt.Errorf("httpapi: certificate: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("httpapi: certificate: %w", err)
	}
	c.current, c.modified, c.checked = &pair, info.ModTime(), time.Now()
	return nil
}

func (c *certificate) get() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.checked) < checkCertificateEvery {
		return c.current
	}
	c.checked = time.Now()
	if info, err := os.Stat(c.certFile); err == nil && info.ModTime().Equal(c.modified) {
		return c.current
	}
	if err := c.read(); err != nil {
		c.log.Error("httpapi: the certificate's file has changed and cannot be read; the old one stays", "error", err)
	}
	return c.current
}

// certificateNames returns the hosts that a certificate is for.
func certificateNames(cfg *tls.Config) []string {
	if cfg == nil || cfg.GetCertificate == nil {
		return nil
	}
	c, err := cfg.GetCertificate(&tls.ClientHelloInfo{})
	if err != nil || c.Leaf == nil {
		return nil
	}
	names := c.Leaf.DNSNames
	for _, ip := range c.Leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}
