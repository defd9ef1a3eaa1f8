package readmetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
)

// Every relative link of every document leads to an existing heading.
func TestLinks(t *testing.T) {
	for _, from := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(prose(document(t, from)), -1) {
			if target := found[1]; !strings.HasPrefix(target, "https://") {
				follow(t, from, target)
			}
		}
	}
}

// A page that begins with a list of its headings has all of them there.
func TestListsOfHeadingsAreComplete(t *testing.T) {
	lists := 0
	for _, path := range documents(t) {
		top, rest, _ := strings.Cut(prose(document(t, path)), "\n## ")
		if len(all(`(?m)^- \[[^\]]*\]\(#([^)\s]+)\)`, top)) < 2 {
			continue
		}
		lists++
		linked := all(`\]\(#([^)\s]+)\)`, top)
		for _, section := range all(`(?m)^(## .+)$`, "## "+rest) {
			require.Subset(t, linked, anchors(section), "%s: the list at the top lacks this heading", path)
		}
	}
	require.Greater(t, lists, 20)
}

func follow(t *testing.T, from, target string) {
	t.Helper()
	path, anchor, named := strings.Cut(target, "#")
	file := from
	if path != "" {
		file = filepath.Join(filepath.Dir(from), path)
	}
	_, err := os.Stat(filepath.Join(root, file))
	require.NoError(t, err, "%s: %s leads nowhere", from, target)
	if named {
		require.Contains(t, anchors(document(t, file)), anchor, "%s: %s: no such heading", from, target)
	}
}

// prose returns a document without its code.
func prose(text string) string { return fence.ReplaceAllString(text, "") }

// anchors returns the names of the headings of a document in links.
func anchors(text string) []string {
	var all []string
	for _, found := range heading.FindAllStringSubmatch(prose(text), -1) {
		all = append(all, strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			}
			return -1
		}, found[1]))
	}
	return all
}

// The anchors of headings with special characters are right.
func TestAnchors(t *testing.T) {
	require.Equal(t, []string{"streams-over-amqp-0-9-1", "differences-from-the-specifications-code"},
		anchors("# Streams over AMQP 0-9-1\n\n```sh\n# no heading\n```\n\n## Differences from the specification's code\n"))
}
