package httpapi

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// checkCertificate is how often the certificate's file is looked at for a newer one, at most.
const checkCertificate = 10 * time.Second

// certificate is read anew when its file changes. A newer one that cannot be read leaves the one that is there.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	looked time.Time
	stamp  time.Time
	now    *tls.Certificate
}

// LoadTLS reads a certificate and its key.
func LoadTLS(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.read(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
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
	c.now, c.stamp, c.looked = &pair, info.ModTime(), time.Now()
	return nil
}

func (c *certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < checkCertificate {
		return c.now
	}
	c.looked = time.Now()
	if info, err := os.Stat(c.certFile); err == nil && info.ModTime().Equal(c.stamp) {
		return c.now
	}
	if err := c.read(); err != nil {
		c.log.Error("httpapi: the certificate's file has changed and cannot be read; the old one stays", "error", err)
	}
	return c.now
}

// certificateNames are the hosts that a certificate is for: the names by which this server goes.
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
