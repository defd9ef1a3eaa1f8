package readmetest

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unplainInSources has more unusual words than unplain, and the plain ones to use instead. In
// documents some of them have a good use: a worker tells the broker something.
var unplainInSources = map[string]string{
	"deed": "dispatch", "deeds": "dispatches", "doubtful": "in doubt", "mending": "fixing", "tell": "report", "tells": "reports",
	"telling": "reporting", "told": "reported", "the way": "the route", "goes on": "continues", "all the same": "still",
}

// wireNames are texts that keep such a word because programs outside this repository, or records of
// earlier versions, have it.
var wireNames = []struct{ path, text, reason string }{
	{"wire/types.go", `"astray"`, "a type of journal records"},
	{"ui/static/core/pagewords.js", "astray: ", "a type of journal records"},
}

// wordLists are files that contain the words because they search for them.
var wordLists = []string{"internal/readmetest/words_test.go", "internal/readmetest/sourcewords_test.go", "ui/test/words.test.js"}

// Sources have no unusual words: all Go files and scripts, the plugin, the clients, and the web UI.
// Identifiers count as the words that they consist of.
func TestPlainWordsInSources(t *testing.T) {
	files := sourceFiles(t)
	require.Greater(t, len(files), 700)
	for _, name := range wireNames {
		require.Contains(t, files[name.path], name.text, "%s is no longer in %s: remove the exception", name.reason, name.path)
		files[name.path] = strings.ReplaceAll(files[name.path], name.text, "")
	}
	plain := maps.Clone(unplain)
	maps.Copy(plain, unplainInSources)
	pattern := unplainPattern(plain)
	for path, source := range files {
		text := splitIdentifiers(source)
		for _, at := range pattern.FindAllStringIndex(text, -1) {
			found := strings.Join(letters.FindAllString(strings.ToLower(text[at[0]:at[1]]), -1), " ")
			t.Errorf("%s:%d: write %q in place of %q, or rephrase the sentence", path, 1+strings.Count(text[:at[0]], "\n"), plain[found], found)
		}
	}
}

// The words of an identifier are found in each notation, and those of a phrase across lines.
func TestUnplainWordsAreFound(t *testing.T) {
	pattern := unplainPattern(unplainInSources)
	for source, want := range map[string][]string{
		"func (d *Deed) ToldTo() {}":             {"Deed", "Told"},
		"isDeed_told HTTPDeed TELL_ALL":          {"Deed", "told", "Deed", "TELL"},
		"// It is on the\n\t// way, and goes on": {"the\n\t// way", "goes on"},
		"* all the\n * same":                     {"all the\n * same"},
		"indeed recommend amend Wayland":         nil,
	} {
		require.Equal(t, want, pattern.FindAllString(splitIdentifiers(source), -1), source)
	}
}

// unplainPattern matches words and phrases. Between the words of a phrase there may be the
// beginning of a line of a comment.
func unplainPattern(words map[string]string) *regexp.Regexp {
	var all []string
	for _, word := range slices.Sorted(maps.Keys(words)) {
		all = append(all, strings.ReplaceAll(word, " ", `[\s/*#]+`))
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(all, "|") + `)\b`)
}

var (
	wordEnd    = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	acronymEnd = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// splitIdentifiers puts spaces between the words of identifiers. Lines stay as they are.
func splitIdentifiers(source string) string {
	source = wordEnd.ReplaceAllString(strings.ReplaceAll(source, "_", " "), "$1 $2")
	return acronymEnd.ReplaceAllString(source, "$1 $2")
}

// sourceFiles returns the sources that this repository contains, by their paths.
func sourceFiles(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	list := tool(t, root, nil, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	for path := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		top, rest, _ := strings.Cut(path, "/")
		var known []string
		switch {
		case slices.Contains(wordLists, path) || strings.HasPrefix(path, "ui/vendor/"):
			continue
		case top == "clients" || top == "ui" && rest != "":
			known = []string{".css", ".go", ".html", ".java", ".js", ".mjs", ".mts", ".py", ".rb", ".rbs", ".ts"}
		default:
			known = []string{".dockerignore", ".erl", ".go", ".sh"}
		}
		// It may be deleted, without a commit.
		if _, err := os.Lstat(filepath.Join(root, path)); err == nil && slices.Contains(known, filepath.Ext(path)) {
			files[path] = document(t, path)
		}
	}
	return files
}
