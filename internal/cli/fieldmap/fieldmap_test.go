package fieldmap

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// apply maps one object.
func apply(t *testing.T, file, object string) (string, error) {
	t.Helper()
	m, err := Parse([]byte(file))
	require.NoError(t, err)
	job, err := m.Apply([]byte(object))
	return string(job), err
}

func TestFieldsComeFromPathsAndConstants(t *testing.T) {
	for _, c := range []struct{ file, object, want string }{
		{"class: job", `{"job":"Mail"}`, `{"class":"Mail"}`},
		{"class: {const: Mail}\nargs: a.0.b", `{"a":[{"b":[ 1, 12345678901234567890 ]}]}`, `{"class":"Mail","args":[ 1, 12345678901234567890 ]}`},
		{"class: {const: Mail}\nargs: [id, {const: {x: [1, null, yes]}}, missing]", `{"id":9007199254740993}`, `{"class":"Mail","args":[9007199254740993,{"x":[1,null,"yes"]},null]}`},
		{"class: {const: Mail}\nargs: [{object: {to: mail, why: {const: 1e3}, no: missing}}]", `{"mail":"ann"}`, `{"class":"Mail","args":[{"to":"ann","why":1e3}]}`},
		{"class: {from: [a.class, class]}", `{"a":{"class":null},"class":"B"}`, `{"class":"B"}`},
		{"class: {from: k, default: Mail}", `{"k":null}`, `{"class":"Mail"}`},
		{"class: k\njid: {from: id, prefix: mail-}", `{"k":"A","id":17}`, `{"jid":"mail-17","class":"A"}`},
		{"class: k\nargs: {from: args, json: true}", `{"k":"A","args":"[12345678901234567890]"}`, `{"class":"A","args":[12345678901234567890]}`},
		{"class: k\nargs: {from: args, json: true}", `{"k":"A","args":[1]}`, `{"class":"A","args":[1]}`},
		{"class: k\nerror_message: errors.-1.error", `{"k":"A","errors":"[{\"error\":\"first\"},{\"error\":\"last\"}]"}`, `{"class":"A","error_message":"last"}`},
		{"class: k\nbacktrace: lines", `{"k":"A","lines":["a","b"]}`, `{"class":"A","backtrace":"a\nb"}`},
		{`class: a\.b`, `{"a.b":"A"}`, `{"class":"A"}`},
		{"class: k\nretry_count: n", `{"k":"A","n":"3"}`, `{"class":"A","retry_count":3}`},
		{"class: k\nfields: {row: ., tenant: t}", `{"k":"A","t":1.50}`, `{"class":"A","row":{"k":"A","t":1.50},"tenant":1.50}`},
	} {
		got, err := apply(t, c.file, c.object)
		require.NoError(t, err, c.file)
		require.Equal(t, c.want, got, c.file)
	}
}

func TestTimesHaveUnits(t *testing.T) {
	for _, c := range []struct{ unit, value, want, reason string }{
		{"", `1795158930.5`, "1795158930.5", ""},
		{"", `"2026-11-20T07:15:30Z"`, "1795158930", ""},
		{"", `"2026-11-20 07:15:30"`, "", "set its unit"},
		{"s", `1795158930`, "1795158930", ""},
		{"s", `"1795158930.25"`, "1795158930.25", ""},
		{"s", `1795158930000`, "", "is its unit ms?"},
		{"s", `"2026-11-20"`, "", "has the unit iso"},
		{"ms", `1795158930250`, "1795158930.25", ""},
		{"iso", `"2026-11-20 07:15:30.250000"`, "1795158930.25", ""},
		{"iso", `"2026-11-20T07:15:30.250000"`, "1795158930.25", ""},
		{"iso", `"2026-11-20 08:15:30+01"`, "1795158930", ""},
		{"iso", `"2026-11-20T08:15:30+01:00"`, "1795158930", ""},
		{"iso", `"2026/11/20 07:15:30 UTC"`, "1795158930", ""},
		{"iso", `"2026/11/20 07:15:30 CET"`, "", "a zone must be UTC or an offset"},
		{"iso", `1795158930`, "", "a number has the unit s or ms"},
	} {
		file := "class: {const: A}\nat: {from: t"
		if c.unit != "" {
			file += ", unit: " + c.unit
		}
		got, err := apply(t, file+"}", `{"t":`+c.value+`}`)
		if c.reason != "" {
			require.ErrorContains(t, err, c.reason, c.value)
			require.ErrorContains(t, err, "at: t (")
			continue
		}
		require.NoError(t, err, c.value)
		require.Equal(t, `{"class":"A","at":`+c.want+`}`, got)
	}
}

func TestPrioritiesHaveARange(t *testing.T) {
	for value, want := range map[string]string{"0": "0", "50": "5", "100": "10", "4": "0", "5": "1"} {
		got, err := apply(t, "class: {const: A}\npriority: {from: p, range: [0, 100]}", `{"p":`+value+`}`)
		require.NoError(t, err)
		require.Equal(t, `{"class":"A","priority":`+want+`}`, got)
	}
	got, err := apply(t, "class: {const: A}\npriority: {from: p, range: [9, 0]}", `{"p":0}`)
	require.NoError(t, err)
	require.Equal(t, `{"class":"A","priority":10}`, got, "the other way round")
	_, err = apply(t, "class: {const: A}\npriority: {from: p, range: [0, 100]}", `{"p":101}`)
	require.EqualError(t, err, "priority: p (101) is outside of the range 0 to 100")
}

func TestWrongMapsAreRefused(t *testing.T) {
	for file, reason := range map[string]string{
		"":                                     "the map is empty",
		"class: [":                             "not valid YAML",
		"- class":                              "line 1 of the map: this must be a table",
		"queue: q":                             "the map has no field class",
		"class: k\nclas: k":                    `line 2 of the map: a job has no field "clas": use jid, class`,
		"class: k\nclass: k":                   "line 2 of the map: class stands here for the second time",
		"class: {form: k}":                     `class has no option "form"`,
		"class: {prefix: k}":                   "class has 0 sources: set one of",
		"class: {from: k, const: k}":           "class has 2 sources: set one of",
		"class: a..b":                          `the path "a..b" has an empty step`,
		"class: {from: []}":                    "this list needs a path",
		"class: k\nat: {from: t, unit: us}":    "unit is s, ms or iso",
		"class: k\nqueue: {from: t, unit: s}":  "only times have one",
		"class: k\nargs: {from: t, prefix: x}": "only a text has a prefix",
		"class: k\npriority: {from: t, range: [1]}":    "range is [lowest, highest]",
		"class: k\npriority: {from: t, range: [1, 1]}": "two different numbers",
		"class: k\npriority: {from: t, range: [a, 1]}": `"a" is no number`,
		"class: k\nretry: {from: t, range: [0, 1]}":    "only priority has one",
		"class: k\nfields: {queue: q}":                 "fields may not contain queue",
		"class: k\nargs: {from: t, json: 1}":           "json is true or false",
		"class: k\nargs: {const: 0x10}":                `write the number "0x10" as JSON has it`,
	} {
		_, err := Parse([]byte(file))
		require.ErrorContains(t, err, reason, file)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for _, c := range []struct{ file, object, reason string }{
		{"class: k", `[]`, "it is no JSON object"},
		{"class: k", `{"k":[1]}`, "class: k ([1]) is neither a text nor a number"},
		{"class: {const: A}\npriority: p", `{"p":"high"}`, `priority: p ("high") is no number`},
		{"class: {const: A}\nargs: {from: a, json: true}", `{"a":"[1"}`, `args: a ("[1") is a text that is not valid JSON`},
	} {
		_, err := apply(t, c.file, c.object)
		require.EqualError(t, err, c.reason)
	}
}

func TestFieldsThatNoObjectHas(t *testing.T) {
	m, err := Parse([]byte("class: k\nqueue: {from: [q, kju]}\nretry: {const: 3}"))
	require.NoError(t, err)
	_, err = m.Apply([]byte(`{"k":"A"}`))
	require.NoError(t, err)
	require.Equal(t, []string{"queue (q or kju)"}, m.Unseen())
}
