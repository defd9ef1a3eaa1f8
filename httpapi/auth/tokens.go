package auth

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// checkTokensEvery is how often the tokens' file is checked for changes, at most.
const checkTokensEvery = time.Second

// tokenFile holds the tokens of --tokens-file. A line is a name, a role and the SHA-256 sum of a
// token in hexadecimal digits; # begins a comment. A file that changes is read again. While it
// cannot be read no token is accepted: the file may have been changed to withdraw one.
type tokenFile struct {
	path string
	now  func() time.Time

	mu       sync.Mutex
	checked  time.Time
	modified time.Time
	size     int64
	bySum    map[string]Principal
	fault    error
}

func newTokenFile(path string, now func() time.Time) *tokenFile {
	return &tokenFile{path: path, now: now}
}

// sumOf returns the sum by which the file names a token.
func sumOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// find returns the principal whose token has a sum.
func (t *tokenFile) find(sum string) (Principal, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bySum == nil && t.fault == nil || t.now().Sub(t.checked) >= checkTokensEvery {
		t.check()
	}
	p, ok := t.bySum[sum]
	return p, ok, t.fault
}

// check reads the file again if it has changed.
func (t *tokenFile) check() {
	t.checked = t.now()
	info, err := os.Stat(t.path)
	if err != nil {
		t.bySum, t.fault, t.modified = nil, fmt.Errorf("httpapi: tokens file: %w", err), time.Time{}
		return
	}
	if info.ModTime().Equal(t.modified) && info.Size() == t.size {
		return
	}
	t.modified, t.size = info.ModTime(), info.Size()
	t.bySum, t.fault = readTokens(t.path)
}

// CheckTokens reads a tokens' file once, to find its faults at the start.
func CheckTokens(path string) error {
	_, err := readTokens(path)
	return err
}

func readTokens(path string) (map[string]Principal, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("httpapi: tokens file: %w", err)
	}
	all := map[string]Principal{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		parts := strings.Fields(text)
		if len(parts) == 0 {
			continue
		}
		p, sum, err := parseToken(parts)
		if err != nil {
			return nil, fmt.Errorf("httpapi: tokens file %s: line %d: %w", path, n, err)
		}
		all[sum] = p
	}
	return all, lines.Err()
}

// parseToken reads the words of a line. Its errors never quote the sum: it may be the token itself.
func parseToken(parts []string) (p Principal, sum string, err error) {
	if len(parts) != 3 {
		return p, "", fmt.Errorf("it must have a name, a role and the SHA-256 sum of a token")
	}
	p = Principal{Name: parts[0], Role: Role(parts[1])}
	if !slices.Contains(rolesByStrength, p.Role) {
		return p, "", fmt.Errorf("the role must be one of %s", Read.roles())
	}
	raw, err := hex.DecodeString(parts[2])
	if err != nil || len(raw) != sha256.Size {
		return p, "", fmt.Errorf("the sum must have %d hexadecimal digits: printf %%s TOKEN | sha256sum", 2*sha256.Size)
	}
	return p, hex.EncodeToString(raw), nil
}
