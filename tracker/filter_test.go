package tracker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace-jobs/millrace/wire"
)

// A record matches if all conditions of the filter do. Conditions about the body match no record
// whose body the view does not keep.
func TestMatcher(t *testing.T) {
	e, err := wire.ParseEntry(retry, 3, []byte(`{"jid":"j","retry_at":100.5,"retry_count":1,"error_class":"Timeout","error_message":"Zu SPÄT","job":{"class":"Mail","queue":"low","tags":["x","y"],"args":[{"customer":42}]}}`))
	require.NoError(t, err)
	kept := newStored(&wire.EntryRecord{Entry: e})
	large := kept
	large.Raw = nil
	at := func(seconds float64) *float64 { return &seconds }
	for _, c := range []struct {
		filter       wire.Filter
		kept, inside bool
	}{
		{wire.Filter{}, true, false},
		{wire.Filter{Queue: "low", Class: "Mail", JID: "j"}, true, false},
		{wire.Filter{Queue: "high", Class: "Mail"}, false, false},
		{wire.Filter{Class: "Post"}, false, false},
		{wire.Filter{JID: "k"}, false, false},
		{wire.Filter{From: at(100.5), To: at(100.500001)}, true, false},
		{wire.Filter{From: at(100.6)}, false, false},
		{wire.Filter{To: at(100.5)}, false, false},
		{wire.Filter{Error: "Timeout"}, true, true},
		{wire.Filter{Error: "Other"}, false, true},
		{wire.Filter{Error: wire.Fingerprint("Mail", "Timeout", "Zu SPÄT")}, true, true},
		{wire.Filter{Error: wire.Fingerprint("Mail", "Timeout", "Zu früh")}, false, true},
		{wire.Filter{Tag: "y"}, true, true},
		{wire.Filter{Tag: "z"}, false, true},
		{wire.Filter{Text: "zu sp"}, true, true},
		{wire.Filter{Text: "zu frueh"}, false, true},
		{wire.Filter{Text: "MAIL", Error: "Timeout", Tag: "x"}, true, true},
		{wire.Filter{Text: "MAIL", Tag: "z"}, false, true},
		{wire.Filter{Text: "MAIL", Queue: "high"}, false, true},
		{wire.Filter{Args: "0.customer:42"}, true, true},
		{wire.Filter{Args: "0.customer:43"}, false, true},
		{wire.Filter{Args: "0.customer:42", Text: "MAIL", Error: "Timeout", Tag: "x", Queue: "low"}, true, true},
		{wire.Filter{Args: "0.customer:42", Tag: "z"}, false, true},
		{wire.Filter{Args: "0.customer"}, false, true}, // it is not valid
	} {
		m := NewMatcher(&c.filter)
		what := fmt.Sprintf("%+v", c.filter)
		require.Equal(t, c.kept, m.Match(&kept), what)
		require.Equal(t, c.kept && !c.inside, m.Match(&large), what)
	}
	require.True(t, NewMatcher(nil).Match(&kept), "without a filter, every record matches")
}

// withArgs returns the record of a retry with these arguments.
func withArgs(args string) []byte {
	return []byte(`{"jid":"j","retry_at":100,"job":{"class":"C", "args" : ` + args + `}}`)
}

func hasArg(stream string, record []byte, args string) bool {
	c := NewContents("", "", "", args)
	return c.hasArg(stream, record)
}

// A filter by an argument compares one value, which is no object and no array.
func TestArgs(t *testing.T) {
	const args = `[{"customer":42,"name":"Ann: \u00e4","a.b":{"c:d":true,"\\":null},"0":"zero","items":[[],{"sku":"x-1"}],"big":9007199254740993,
		"text":"42","twice":1,"twice":2,"\u0065scaped":"e","half":"\ud800","empty":"","":{"x":1}}, 4.20e1 ,"two",false, -0.0]`
	fortyTwo := []string{"42", "42.0", "4.2e1", "420e-1", "4.20e1", "42.00"}
	for path, values := range map[string][]string{
		"0.customer":     fortyTwo,
		"0.text":         {"42"},
		"0.name":         {"Ann: ä"},
		`0.a\.b.c\:d`:    {"true"},
		`0.a\.b.\\`:      {"null"},
		"0.0":            {"zero"},
		"0.items.1.sku":  {"x-1"},
		"0.big":          {"9007199254740993", "9007199254740993.0"},
		"0.twice":        {"2"},
		"0.escaped":      {"e"},
		"0.half":         {"\ufffd"},
		"0.empty":        {""},
		"1":              fortyTwo,
		"2":              {"two"},
		"3":              {"false"},
		"4":              {"0", "-0", "-0.0", "0e5"},
		"0":              {},
		"0.items":        {},
		"0.items.0":      {},
		"0.missing":      {},
		"0.customer.0":   {},
		"5":              {},
		"00":             {},
		"-1":             {},
		"+1":             {},
		"#":              {},
		"0.items.#":      {},
		"*":              {},
		"0.cust*":        {},
		"@this":          {},
		"2.0":            {},
		"99999999999999": {},
	} {
		for _, value := range []string{
			"42", "42.0", "4.2e1", "420e-1", "4.20e1", "42.00", "042", "+42", " 42", "43", "Ann: ä", "ann: ä", "true", "True", "false", "null", "", "0", "-0", "-0.0", "0e5",
			"zero", "x-1", "9007199254740993", "9007199254740993.0", "9007199254740992", "2", "e", "\ufffd", "two", `"two"`, "[]", `{"sku":"x-1"}`, "1e99999999999",
		} {
			want := slices.Contains(values, value)
			require.Equal(t, want, hasArg(wire.Retries, withArgs(args), path+":"+value), "%s:%s", path, value)
			require.Equal(t, want, hasArg(wire.Gated, []byte(`{"class":"C","args":`+args+`}`), path+":"+value), "%s:%s of a gated job", path, value)
		}
	}
	require.True(t, hasArg(wire.DeadJobs, withArgs(`{"customer":{"id":7}}`), "customer.id:7"), "the arguments may be an object")
	require.True(t, hasArg(wire.DeadJobs, withArgs(`[1e99999999999]`), "0:1e99999999999"), "its text is the same")
	for _, none := range []string{`"0"`, `null`, `[]`, `{}`, `7`} {
		require.False(t, hasArg(wire.Retries, withArgs(none), "0:0"), none)
		require.False(t, hasArg(wire.Retries, withArgs(none), "0:"), none)
	}
	require.False(t, hasArg(wire.Retries, withArgs(`""`), "0"), "a filter that is not valid matches nothing")
	require.False(t, hasArg(wire.Retries, []byte(`{"args":[7],"job":{"class":"C"}}`), "0:7"), "the arguments are those of the job")
}

// plainly is what hasArg does, with the parser of the standard library.
func plainly(t require.TestingT, record []byte, path []string, value string) bool {
	d := json.NewDecoder(bytes.NewReader(record))
	d.UseNumber()
	var at any
	require.NoError(t, d.Decode(&at))
	for _, step := range append([]string{"job", "args"}, path...) {
		var found bool
		switch in := at.(type) {
		case map[string]any:
			at, found = in[step]
		case []any:
			i, err := strconv.Atoi(step)
			if found = err == nil && strconv.Itoa(i) == step && 0 <= i && i < len(in); found {
				at = in[i]
			}
		}
		if !found {
			return false
		}
	}
	switch at := at.(type) {
	case nil:
		return value == "null"
	case bool:
		return value == strconv.FormatBool(at)
	case string:
		return value == at
	case json.Number:
		return value == at.String() || sameNumber(at.String(), value)
	}
	return false
}

func sameNumber(a, b string) bool {
	var number any
	d := json.NewDecoder(strings.NewReader(b))
	d.UseNumber()
	if d.Decode(&number) != nil || number != json.Number(b) {
		return false
	}
	x, _ := new(big.Rat).SetString(a)
	y, _ := new(big.Rat).SetString(b)
	return x.Cmp(y) == 0
}

// hugeExponent matches a number that takes too long to be computed.
var hugeExponent = regexp.MustCompile(`[eE][+-]?[0-9]{4}`)

// requireArgs checks one filter on one record.
func requireArgs(t require.TestingT, args, filter string) bool {
	path, value, err := wire.SplitArgs(filter)
	body := withArgs(args)
	if err != nil {
		require.False(t, hasArg(wire.Retries, body, filter))
		return false
	}
	want := plainly(t, body, path, value)
	require.Equal(t, want, hasArg(wire.Retries, body, filter), "%q in %s", filter, args)
	return want
}

func FuzzArgs(f *testing.F) {
	for args, filter := range map[string]string{
		`[{"customer":42}]`: "0.customer:4.2e1", `[{"a.b":[null]}]`: `0.a\.b.0:null`, `{"\u0061":"\ud83d\ude00"}`: "a:😀", `["\ud800\u0061","\ud800"]`: "0:\ufffda",
		`[{"a":1,"a":{"b":2},"a":3}]`: "0.a:3", `[-0.0e5,1E+2]`: "1:100", "[\"\xff\"]": "0:\ufffd", `[[[[]]]]`: "0.0.0.0:", `[{"":1}]`: `0.\::1`, "\n[ true ,\tfalse ]": "1:false",
	} {
		f.Add(args, filter)
	}
	f.Fuzz(func(t *testing.T, args, filter string) {
		if !json.Valid([]byte(args)) || !json.Valid(withArgs(args)) || hugeExponent.MatchString(args+" "+filter) {
			return
		}
		requireArgs(t, args, filter)
	})
}

// deepest is how deep the arguments are nested that drawArgs returns.
const deepest = 4

// drawArgs returns a value that is written in an odd way.
func drawArgs(t *rapid.T, depth int) string {
	least, most := 0, 8
	switch depth {
	case 0:
		most = 2
	case deepest:
		least = 3
	}
	pick := func(all ...string) string { return rapid.SampledFrom(all).Draw(t, "text") }
	kind := rapid.IntRange(least, most).Draw(t, "kind")
	switch kind {
	case 0:
		return pick("null", "true", "false")
	case 1:
		return pick("0", "-0", "0.0", "1", "1.0", "10e-1", "1E0", "-1", "42", "4.2e1", "420e-1", "9007199254740993", "9007199254740992", "1e400")
	case 2:
		return pick(`"a"`, `"\u0061"`, `"1"`, `"42"`, `"null"`, `""`, `"\ud800"`, `"\ud800\u0061"`, "\"\xff\"", `"a.b:\\"`, `"\ud83d\ude00"`)
	}
	items := make([]string, rapid.IntRange(0, 4).Draw(t, "size"))
	for i := range items {
		items[i] = drawArgs(t, depth-1)
		if kind < 6 {
			items[i] = pick(`"a"`, `"\u0061"`, `"b"`, `"a.b"`, `":"`, `"\\"`, `"0"`, `""`, "\"\xff\"", `"\ud800\u0061"`) + pick(":", " : ", ":\n") + items[i]
		}
	}
	inner := pick("", " ", "\t") + strings.Join(items, pick(",", " , ")) + pick("", "\n")
	if kind < 6 {
		return "{" + inner + "}"
	}
	return "[" + inner + "]"
}

// drawFilter returns a filter that matches a value, if there is one.
func drawFilter(t *rapid.T, args string) (filter string, matches bool) {
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	var at any
	require.NoError(t, d.Decode(&at))
	var path []string
	for {
		step := ""
		switch in := at.(type) {
		case map[string]any:
			names := slices.Sorted(maps.Keys(in))
			if len(names) > 0 {
				step = rapid.SampledFrom(names).Draw(t, "step")
			}
			at = in[step]
		case []any:
			if len(in) > 0 {
				i := rapid.IntRange(0, len(in)-1).Draw(t, "step")
				at, step = in[i], strconv.Itoa(i)
			}
		default:
			text := fmt.Sprint(at)
			if at == nil {
				text = "null"
			}
			return strings.Join(path, ".") + ":" + text, len(path) > 0
		}
		if step == "" { // no path leads to a member without a name
			return "", false
		}
		path = append(path, strings.NewReplacer(`\`, `\\`, `.`, `\.`, `:`, `\:`).Replace(step))
	}
}

// A value is found where encoding/json reads it, and nowhere else.
func TestArgsAreReadLikeEncodingJSON(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		args := drawArgs(t, deepest)
		if filter, matches := drawFilter(t, args); matches {
			require.True(t, requireArgs(t, args, filter), "%q in %s", filter, args)
			found++
		}
		steps := rapid.SampledFrom([]string{"a", "b", `a\.b`, `\:`, `\\`, "0", "1", "2", "00", "-1", "\ufffd", "\ufffda", "#", "@this"})
		path := strings.Join(rapid.SliceOfN(steps, 1, 3).Draw(t, "path"), ".")
		for _, value := range []string{"null", "true", "false", "0", "1", "-1", "42", "42.0", "9007199254740993", "1e400", "a", "", "\ufffd", "\ufffda", "a.b:\\", "😀"} {
			requireArgs(t, args, path+":"+value)
		}
	})
	require.Greater(t, found, 10, "values are found")
}
