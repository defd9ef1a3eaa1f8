package httpapi

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// checkTokens is how often the tokens' file is looked at for changes, at most.
const checkTokens = time.Second

// tokens are those of --tokens-file. A line is a name, a role and the SHA-256 sum of a token in hexadecimal digits; # begins a comment.
// A file that changes is read again. While it cannot be read nobody gets in: it may be a token's end that is written there.
type tokens struct {
	path string
	now  func() time.Time

	mu     sync.Mutex
	looked time.Time
	stamp  time.Time
	size   int64
	all    map[string]who // by sum
	fault  error
}

func newTokens(path string, now func() time.Time) *tokens { return &tokens{path: path, now: now} }

// sumOf is what the file has of a token.
func sumOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// of tells whose token has a sum.
func (t *tokens) of(sum string) (who, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil && t.fault == nil || t.now().Sub(t.looked) >= checkTokens {
		t.look()
	}
	w, ok := t.all[sum]
	return w, ok, t.fault
}

func (t *tokens) look() {
	t.looked = t.now()
	info, err := os.Stat(t.path)
	if err != nil {
		t.all, t.fault, t.stamp = nil, fmt.Errorf("httpapi: tokens file: %w", err), time.Time{}
		return
	}
	if info.ModTime().Equal(t.stamp) && info.Size() == t.size {
		return
	}
	t.stamp, t.size = info.ModTime(), info.Size()
	t.all, t.fault = readTokens(t.path)
}

// CheckTokens reads a tokens' file once, to find its faults at the start.
func CheckTokens(path string) error {
	_, err := readTokens(path)
	return err
}

func readTokens(path string) (map[string]who, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("httpapi: tokens file: %w", err)
	}
	all := map[string]who{}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		parts := strings.Fields(text)
		if len(parts) == 0 {
			continue
		}
		w, sum, err := tokenOf(parts)
		if err != nil {
			return nil, fmt.Errorf("httpapi: tokens file %s: line %d: %w", path, n, err)
		}
		all[sum] = w
	}
	return all, lines.Err()
}

// tokenOf never quotes a sum's place in an error: somebody may have put the token itself there.
func tokenOf(parts []string) (w who, sum string, err error) {
	if len(parts) != 3 {
		return w, "", fmt.Errorf("it must have a name, a role and the SHA-256 sum of a token")
	}
	w = who{name: parts[0], role: Role(parts[1])}
	if !w.role.known() {
		return w, "", fmt.Errorf("the role must be one of %s", reads.weakest())
	}
	raw, err := hex.DecodeString(parts[2])
	if err != nil || len(raw) != sha256.Size {
		return w, "", fmt.Errorf("the sum must have %d hexadecimal digits: printf %%s TOKEN | sha256sum", 2*sha256.Size)
	}
	return w, hex.EncodeToString(raw), nil
}
