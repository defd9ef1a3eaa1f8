package readmetest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

// call is a route that a document names, with its parameters.
type call struct {
	method, path string // the path as the documents write it, with :parameter
	parameters   []string
}

func (c call) String() string { return c.method + " " + c.path }

var callForm = regexp.MustCompile("`([A-Z]+) (/[^`? ]+)(?:\\?([^`]*))?`")

func callsIn(text string) (calls []call) {
	for _, found := range callForm.FindAllStringSubmatch(text, -1) {
		calls = append(calls, call{found[1], found[2], strings.FieldsFunc(found[3], func(r rune) bool { return r == '&' })})
	}
	return calls
}

// behindUI returns two parts of docs/api/web-ui.md: the table of the web UI's calls, and the calls
// below it, which the web UI does not make.
func behindUI(t *testing.T) (table string, others string) {
	t.Helper()
	_, section, found := strings.Cut(document(t, "docs/api/web-ui.md"), "\n|---")
	require.True(t, found)
	table, others, found = strings.Cut(section, "|\n\n")
	require.True(t, found)
	return table, others
}

func contract(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData([]byte(document(t, "httpapi/openapi.yaml")))
	require.NoError(t, err)
	return doc
}

// The table of calls and the contract have the same calls, together with the calls below the table.
func TestCallsBehindTheUI(t *testing.T) {
	routes := contract(t).Paths
	table, others := behindUI(t)
	named := map[string]bool{}
	for _, c := range callsIn(table) {
		named[c.String()] = true
		requireInContract(t, routes, c)
	}
	for _, c := range callsIn(others) {
		require.False(t, named[c.String()], "%s is there twice: keep one of the two", c)
		named[c.String()] = true
		requireInContract(t, routes, c)
	}
	for path, item := range routes.Map() {
		for method := range item.Operations() {
			route := method + " " + regexp.MustCompile(`\{(\w+)\}`).ReplaceAllString(path, ":$1")
			require.True(t, named[route], "docs/api/web-ui.md does not say what %s is for", route)
		}
	}
}

func requireInContract(t *testing.T, routes *openapi3.Paths, c call) {
	t.Helper()
	path := routes.Value(parameter.ReplaceAllString(c.path, "{$1}"))
	require.NotNil(t, path, "%s is not in the contract", c)
	operation := path.GetOperation(c.method)
	require.NotNil(t, operation, "%s is not in the contract", c)
	for _, name := range c.parameters {
		has := func(all openapi3.Parameters) bool { return all.GetByInAndName("query", name) != nil }
		require.True(t, has(operation.Parameters) || has(path.Parameters), "%s has no parameter %s", c, name)
	}
}

// The contract has every member of an answer that the table names.
func TestMembersBehindTheUI(t *testing.T) {
	table, _ := behindUI(t)
	members := all("`([a-z][a-z0-9_.]*)`", table)
	require.Greater(t, len(members), 20)
	for _, member := range members {
		for _, name := range strings.Split(member, ".") {
			require.Regexp(t, `\b`+name+`\b`, document(t, "httpapi/openapi.yaml"), member)
		}
	}
}

// The table has every call in the code of the web UI.
func TestUIAsksForWhatIsListed(t *testing.T) {
	table, _ := behindUI(t)
	listed := callsIn(table)
	asked := askedByUI(t, sources(t, "ui/static", "*.js"))
	require.Greater(t, len(asked), 50)
	for _, a := range asked {
		for i, segment := range a.segments {
			for _, one := range segment {
				narrow := slices.Clone(a.segments)
				narrow[i] = []string{one}
				require.True(t, slices.ContainsFunc(listed, func(c call) bool { return asks(c, a.method, narrow) }),
					"docs/api/web-ui.md has no call for %s (%s)", a.code, one)
			}
		}
	}
}

// request is a request in the code of the UI. A segment of its path is one of some words, or a
// parameter if there are none.
type request struct {
	method   string // empty: unknown
	segments [][]string
	code     string
}

func asks(c call, method string, segments [][]string) bool {
	path := strings.Split(strings.TrimPrefix(c.path, "/api/"), "/")
	if method != "" && c.method != method || len(path) != len(segments) {
		return false
	}
	for i, word := range path {
		isParameter := strings.HasPrefix(word, ":")
		if isParameter != (len(segments[i]) == 0) || !isParameter && !slices.Contains(segments[i], word) {
			return false
		}
	}
	return true
}

// oneOf has the values of variables in the UI's code that choose a route. All other variables are
// parameters.
var oneOf = map[string][]string{
	"set":    {"scheduled-jobs", "retries", "dead-jobs", "gated-jobs"},
	"path":   {"job-queues", "job-metrics", "processes", "periodic-jobs", "limits"},
	"kind":   {"periodic-jobs", "limits"},
	"action": {"trigger", "retry", "kill"},
	"what":   {"quiet", "stop"},
	"order":  {"pause", "resume"},
}

var (
	comment   = regexp.MustCompile(`/\*.*?\*/`)
	queueActs = regexp.MustCompile(`\bact\((?:\(did\) => )?words\.\w+\(.*?\), (\[[^\]]*\]|\w+), '([A-Z]+)'`)
	written   = regexp.MustCompile(`'/api/([a-z][a-z/{}-]*)'`)
	options   = regexp.MustCompile(`^\), \{ method(?:: '([A-Z]+)')?`)
)

// askedByUI finds the requests in JavaScript code.
func askedByUI(t *testing.T, code string) (found []request) {
	t.Helper()
	code = comment.ReplaceAllString(strings.Replace(code, "function apiPath(", "", 1), "")
	parts := strings.Split(code, "apiPath(")
	for _, rest := range parts[1:] {
		arguments, after := argumentsOf(t, rest)
		if len(arguments) > 1 && arguments[1] == "part" { // the actions on a queue: below
			continue
		}
		for _, segments := range pathsOf(t, arguments) {
			found = append(found, request{methodOf(after), segments, "apiPath(" + strings.Join(arguments, ", ") + ")"})
		}
	}
	acts := queueActs.FindAllStringSubmatch(code, -1)
	require.Len(t, acts, 3)
	for _, act := range acts {
		found = append(found, request{act[2], pathsOf(t, []string{"'job-queues'", act[1]})[0], act[0]})
	}
	found = append(found, actionsOf(t, code)...)
	for _, path := range written.FindAllStringSubmatch(code, -1) {
		found = append(found, request{"", segmentsOf(path[1]), path[0]})
	}
	return found
}

// actionsOf returns the requests for the actions that each set has. Changing and deleting have
// their own methods.
func actionsOf(t *testing.T, code string) (found []request) {
	t.Helper()
	list := regexp.MustCompile(`(?s)actionsOf = \{(.*?)\};`).FindStringSubmatch(code)
	require.NotNil(t, list)
	for _, of := range regexp.MustCompile(`([a-z-]+)'?: \[([^\]]*)\]`).FindAllStringSubmatch(list[1], -1) {
		require.Contains(t, oneOf["set"], of[1])
		for _, action := range all(`'(trigger|retry|kill)'`, of[2]) {
			found = append(found, request{"POST", [][]string{{of[1]}, nil, {action}}, of[0]})
		}
	}
	require.Len(t, found, 6)
	return found
}

// segmentsOf splits a path, or a part of one, in the form of the contract.
func segmentsOf(path string) (segments [][]string) {
	for word := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(word, "{") {
			segments = append(segments, nil)
			continue
		}
		segments = append(segments, []string{word})
	}
	return segments
}

// methodOf returns the method of a request: from the code after its path, or from the command line
// in which a page shows it.
func methodOf(after string) string {
	if found := options.FindStringSubmatch(after); found != nil {
		return found[1]
	}
	if shown, _, _ := strings.Cut(after, "</pre>"); strings.HasPrefix(after, ")} \\") && strings.Contains(shown, " -d '") {
		return "POST"
	}
	return "GET"
}

// pathsOf returns the paths that the arguments of apiPath may mean. A part may be left out.
func pathsOf(t *testing.T, arguments []string) [][][]string {
	t.Helper()
	words := wordsOf(arguments[0])
	require.NotEmpty(t, words, "which routes can apiPath(%s …) mean?", arguments[0])
	path := [][]string{words}
	if len(words) == 1 {
		path = segmentsOf(words[0])
	}
	switch {
	case len(arguments) == 1, arguments[1] == "[]":
		return [][][]string{path}
	case strings.Contains(arguments[1], "? [] :"):
		return [][][]string{path, append(slices.Clone(path), nil)}
	case !strings.HasPrefix(arguments[1], "["):
		return [][][]string{append(path, wordsOf(arguments[1]))}
	}
	inner, _ := argumentsOf(t, strings.TrimSuffix(arguments[1][1:], "]")+")")
	for _, part := range inner {
		path = append(path, wordsOf(part))
	}
	return [][][]string{path}
}

// wordsOf returns the possible words of an expression, or none if it is a parameter.
func wordsOf(expression string) []string {
	expression = strings.Trim(expression, " ()")
	if _, chosen, is := strings.Cut(expression, " ? "); is {
		expression = chosen
	}
	if quoted := all(`'([^']*)'`, expression); len(quoted) > 0 {
		return quoted
	}
	return oneOf[expression]
}

// argumentsOf splits the text before the parenthesis that closes a call. It returns the rest from
// there on.
func argumentsOf(t *testing.T, text string) (arguments []string, rest string) {
	t.Helper()
	depth, begin := 0, 0
	for i, c := range text {
		switch c {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth == 0 {
				return append(arguments, strings.TrimSpace(text[begin:i])), text[i:]
			}
			depth--
		case ',':
			if depth == 0 {
				arguments, begin = append(arguments, strings.TrimSpace(text[begin:i])), i+1
			}
		}
	}
	require.Fail(t, "a call without an end", text)
	return nil, ""
}
