package readmetest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// unplain are words that the field does not use, and the plain ones: docs are read by people whose English is their second language.
	unplain = map[string]string{
		"anew": "again", "whoever": "a user who", "whatever": "everything that", "somebody": "a user", "nobody": "no user", "astray": "misrouted",
		"mend": "fix", "mended": "fixed", "mends": "fixes", "gravest": "most severe", "thereof": "of it",
	}
	codeSpan = regexp.MustCompile("`[^`]*`")
	address  = regexp.MustCompile(`\]\([^)]*\)`)
	letters  = regexp.MustCompile(`[A-Za-z]+`)
	flagHelp = regexp.MustCompile(`help:"([^"]*)"`)
)

// TestPlainWords reads what users read: the documents, the READMEs of the clients, the API's contract, and the help of flags.
func TestPlainWords(t *testing.T) {
	texts := map[string]string{"httpapi/openapi.yaml": document(t, "httpapi/openapi.yaml")}
	for _, path := range documents(t) {
		if path != "CHANGELOG.md" && path != "CONTRIBUTING.md" {
			texts[path] = prose(document(t, path))
		}
	}
	for _, language := range []string{"go", "java", "javascript", "python", "ruby"} {
		path := filepath.Join("clients", language, "README.md")
		texts[path] = prose(document(t, path))
	}
	var helps []string
	for _, found := range flagHelp.FindAllStringSubmatch(sources(t, "cmd/millrace", "*.go"), -1) {
		helps = append(helps, found[1])
	}
	require.Greater(t, len(helps), 100)
	texts["help of cmd/millrace"] = strings.Join(helps, "\n")

	for path, text := range texts {
		text = address.ReplaceAllString(codeSpan.ReplaceAllString(text, ""), "]")
		for _, found := range letters.FindAllString(text, -1) {
			plain, isUnplain := unplain[strings.ToLower(found)]
			require.False(t, isUnplain, "%s: write %q in place of %q, or turn the sentence round", path, plain, found)
		}
	}
}
