package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// fingerprintForm is what a filter by error must look like to mean a group of errors, not an error class.
var fingerprintForm = regexp.MustCompile(`^fp-[0-9a-f]{16}$`)

// IsFingerprint tells whether a filter by error means a group of errors.
func IsFingerprint(text string) bool { return fingerprintForm.MatchString(text) }

// maxMessage is how much of a message tells errors apart, in bytes.
const maxMessage = 500

// Fingerprint names a group of errors: those of one class of jobs, with one error class, whose messages differ in nothing but what
// changes from one time to the next.
func Fingerprint(class, errorClass, message string) string {
	sum := sha256.Sum256([]byte(class + "\x00" + errorClass + "\x00" + Normalised(message)))
	return "fp-" + hex.EncodeToString(sum[:8])
}

// What changes from one time to the next, and what stands in its place. The order counts.
var volatile = []struct {
	what *regexp.Regexp
	sign string
}{
	{regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`[\w.+-]+@[\w-]+\.[\w.-]+`), "<email>"},
	{regexp.MustCompile(`0[xX][0-9a-fA-F]+`), "<n>"},
	{regexp.MustCompile(`(?i)\b[0-9a-f]*(?:[0-9][a-f]|[a-f][0-9])[0-9a-f]{6,}\b`), "<id>"},
	{regexp.MustCompile(`"[^"]*"|'[^']*'|` + "`[^`]*`"), "<text>"},
	{regexp.MustCompile(`[0-9]+(?:[.,:][0-9]+)*`), "<n>"},
	{regexp.MustCompile(`\s+`), " "},
}

// Normalised is the first line of a message without what changes from one time to the next.
func Normalised(message string) string {
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	for _, v := range volatile {
		message = v.what.ReplaceAllString(message, v.sign)
	}
	return message
}
