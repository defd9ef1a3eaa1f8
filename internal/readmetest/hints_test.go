package readmetest

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pages say what a reader needs on a machine that has only Debian, and what to do when something
// is different from the page. No other test misses these sentences.
func TestHints(t *testing.T) {
	for path, hints := range map[string][]string{
		"README.md": {
			"Python 3.11 with its `venv` (Debian: `python3-venv`)",
			"(RabbitMQ 3.10, LavinMQ 2.9, or later)", "is called a *sidecar*", "[need no broker](docs/clients.md#test-helpers)",
		},
		"docs/install.md": {
			"`Worker(\"amqp://…\", queues=[\"mails\"])`, `Client(\"amqp://…\")`", "`--http-addr HOST:PORT`",
			"add users in the broker's own UI (*Broker* in the output, then *Admin*)",
		},
		"clients/python/README.md":     {"`venv` is in the package `python3-venv`"},
		"clients/ruby/README.md":       {"a C compiler and Ruby's headers (Debian: `build-essential` and `ruby-dev`)"},
		"docs/tutorials/python.md":     {"Python 3.11 or later with its `venv` (Debian: `python3-venv`)"},
		"docs/tutorials/ruby.md":       {"a C compiler (Debian: `ruby-dev` and `build-essential`)", "Run this in each terminal"},
		"docs/tutorials/javascript.md": {"Node 20 or later, with npm"},
		"docs/tutorials/java.md":       {"a JDK 17 or later with Maven (Debian: `default-jdk` and `maven`)"},
		"docs/without-a-library.md":    {"`python3-pika`", "in a virtual environment", "`ruby-bunny`", "Debian's packages `curl` and `jq`", "an empty folder of its own"},
		"docs/faq.md": {
			"Millrace does not know the job until a worker has it. `millrace queues` says how many jobs wait there",
			"if Millrace could set its policies", "if it supports streams (Amazon MQ does not)",
			"The project knows of no installation in production", "With [`--auth=header`](api-access.md#signed-header) a proxy authenticates users",
		},
		"docs/upgrading.md": {
			"Within a major version, an upgrade keeps these", "Each version reads the journal formats of all earlier ones with its major version",
		},
		"docs/hosted-brokers.md": {"The management API of hosted brokers is often at port 443"},
	} {
		text := strings.Join(strings.Fields(document(t, path)), " ")
		for _, hint := range hints {
			require.True(t, strings.Contains(text, hint), "%s no longer says: %s", path, hint)
		}
	}
	require.NotContains(t, document(t, "README.md"), "/var/", "an ordinary user may not write there")
}

// A table is for looking things up: a cell that is a paragraph belongs below it.
func TestTablesAreNarrow(t *testing.T) {
	for _, path := range documents(t) {
		for line := range strings.Lines(document(t, path)) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			require.LessOrEqual(t, len([]rune(line)), 400, "%s: %s", path, line)
			for cell := range strings.SplitSeq(codeSpan.ReplaceAllString(line, "x"), "|") {
				require.Less(t, len(sentenceEnd.FindAllString(cell, -1)), 2, "%s: over two sentences: %s", path, cell)
			}
		}
	}
}

// sentenceEnd matches the end of a sentence that another one follows.
var sentenceEnd = regexp.MustCompile(`[.!?]\)? +[^a-z ]`)
