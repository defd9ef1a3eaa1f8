package readmetest

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	// unplain has unusual words, and the plain ones to use instead: many readers of the documents
	// have English as their second language.
	unplain = map[string]string{
		"anew": "again", "whoever": "a user who", "whatever": "everything that", "somebody": "a user", "nobody": "no user", "astray": "misrouted",
		"mend": "fix", "mended": "fixed", "mends": "fixes", "gravest": "most severe", "thereof": "of it",
	}
	codeSpan = regexp.MustCompile("`[^`]*`")
	address  = regexp.MustCompile(`\]\([^)]*\)`)
	letters  = regexp.MustCompile(`[A-Za-z]+`)
)

// Texts for users have no unusual words. These are the documents, the READMEs of the clients, the
// contract of the API, the files in deploy, and the help, errors and log lines of the commands, the
// API and what the web UI shows of the leader.
func TestPlainWords(t *testing.T) {
	texts := map[string]string{}
	for _, path := range []string{"httpapi/openapi.yaml", "deploy/prometheus/alerts.yaml", "deploy/kubernetes.yaml", "docker-compose.yml"} {
		texts[path] = document(t, path)
	}
	for _, path := range documents(t) {
		texts[path] = prose(document(t, path))
	}
	for _, language := range []string{"go", "java", "javascript", "python", "ruby"} {
		path := filepath.Join("clients", language, "README.md")
		texts[path] = prose(document(t, path))
	}
	addMessages(t, texts)
	require.Greater(t, len(texts), 1000)

	for path, text := range texts {
		text = address.ReplaceAllString(codeSpan.ReplaceAllString(text, ""), "]")
		for _, found := range letters.FindAllString(text, -1) {
			plain, isUnplain := unplain[strings.ToLower(found)]
			require.False(t, isUnplain, "%s: write %q in place of %q, or rephrase the sentence", path, plain, found)
		}
	}
}

// Documents and the contract say how a job ended, and not "what became of it".
func TestDocumentsNameOutcomes(t *testing.T) {
	for _, path := range append(documents(t), "httpapi/openapi.yaml") {
		text := strings.Join(strings.Fields(document(t, path)), " ")
		require.False(t, strings.Contains(text, "became of"), "%s: write how it ended", path)
	}
}

// In messages, jobs are delivered. Fire is a word of the wire format, and a value of --on-gap.
func TestMessagesSayDeliver(t *testing.T) {
	texts := map[string]string{}
	addMessages(t, texts)
	for at, text := range texts {
		isMessage := strings.Contains(text, " ") && !strings.HasPrefix(text, `name:"on-gap"`)
		require.False(t, isMessage && fire.MatchString(text), "%s: write deliver in place of fire: %s", at, text)
	}
}

var fire = regexp.MustCompile(`(?i)\b(un|re)?(fire[sd]?|firing)\b`)

// addMessages adds the strings of the packages that write messages.
func addMessages(t *testing.T, texts map[string]string) {
	t.Helper()
	for _, folder := range []string{
		"cmd/millrace", "httpapi", "httpapi/auth", "httpapi/live", "httpapi/problem", "httpapi/prom", "internal/apiclient", "internal/cli",
		"internal/cli/flags", "internal/cli/help", "internal/cli/humantime", "internal/cli/output", "internal/connect", "internal/devup",
		"internal/devup/demo", "internal/doctor", "scheduler", "tracker/attention",
	} {
		addStrings(t, texts, folder)
	}
}

// addStrings adds the strings in the Go files of a directory, by their positions. Strings in tests
// are not for users.
func addStrings(t *testing.T, texts map[string]string, folder string) {
	t.Helper()
	places := token.NewFileSet()
	for _, file := range goFiles(t, places, folder) {
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
				texts[places.Position(literal.Pos()).String()] = must(strconv.Unquote(literal.Value))
			}
			return true
		})
	}
}
