package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// fingerprintForm matches a filter by error that means a group of errors, and not an error class.
var fingerprintForm = regexp.MustCompile(`^fp-[0-9a-f]{16}$`)

// IsFingerprint reports whether a filter by error means a group of errors.
func IsFingerprint(text string) bool { return fingerprintForm.MatchString(text) }

// maxMessage is how many bytes of a message distinguish errors.
const maxMessage = 500

// Fingerprint returns the name of a group of errors. They have the same job class, the same error
// class, and messages that differ only in their variable parts.
func Fingerprint(class, errorClass, message string) string {
	sum := sha256.Sum256([]byte(class + "\x00" + errorClass + "\x00" + Normalised(message)))
	return "fp-" + hex.EncodeToString(sum[:8])
}

// volatile has the variable parts of messages, and what replaces them. The order matters. Most
// messages have few such parts, and regular expressions are slow. So each has a cheap test, which
// accepts everything that the expression matches.
var volatile = []struct {
	what *regexp.Regexp
	sign string
	may  func(message string) bool
}{
	{regexp.MustCompile(`(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<id>", func(m string) bool { return strings.Count(m, "-") >= 4 }},
	{regexp.MustCompile(`[\w.+-]+@[\w-]+\.[\w.-]+`), "<email>", has("@")},
	{regexp.MustCompile(`0[xX][0-9a-fA-F]+`), "<n>", has("xX")},
	{regexp.MustCompile(`(?i)\b[0-9a-f]*(?:[0-9][a-f]|[a-f][0-9])[0-9a-f]{6,}\b`), "<id>", hasHex},
	{regexp.MustCompile(`"[^"]*"|'[^']*'|` + "`[^`]*`"), "<text>", has("\"'`")},
	{regexp.MustCompile(`[0-9]+(?:[.,:][0-9]+)*`), "<n>", has("0123456789")},
	{regexp.MustCompile(`\s+`), " ", spaced},
}

func has(any string) func(string) bool {
	return func(m string) bool { return strings.ContainsAny(m, any) }
}

// hasHex reports whether the text has eight hexadecimal digits in a row.
func hasHex(m string) bool {
	run := 0
	for i := range len(m) {
		c := m[i]
		if '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' {
			if run++; run == 8 {
				return true
			}
			continue
		}
		run = 0
	}
	return false
}

// spaced reports whether the text has white space other than single blanks.
func spaced(m string) bool { return strings.Contains(m, "  ") || strings.ContainsAny(m, "\t\n\f\r") }

// Normalised returns the first line of a message without its variable parts.
func Normalised(message string) string {
	message, _, _ = strings.Cut(strings.TrimSpace(message), "\n")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	for _, v := range volatile {
		if v.may(message) {
			message = v.what.ReplaceAllString(message, v.sign)
		}
	}
	return message
}
