package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMistakesAreDetected(t *testing.T) {
	for _, m := range mistakes {
		for _, name := range []string{m.scenario, m.also} {
			require.True(t, name == "" || slices.ContainsFunc(scenarios, func(s scenario) bool { return s.name == name }), name)
		}
	}
	for _, c := range []struct {
		says, failure string
		asItMust      bool
	}{
		{"lost", "a job was lost", true}, {"lost", "", false}, {"lost", "the broker did not start", false},
		{"", "", true}, {"", "a job was lost", false},
	} {
		m := mistake{says: c.says}
		verdict, asItMust := m.judge("wrong", "kill", result{failure: c.failure})
		require.Equal(t, c.asItMust, asItMust, "%+v: %s", c, verdict)
	}
}

// unproven are the scenarios that no wrong client has shown to fail.
var unproven = []string{
	"priority", "restart", "crash", "kill", "crowd",
}

func TestMistakesApply(t *testing.T) {
	t.Chdir("../..")
	langs, proven := map[string]int{}, map[string]bool{}
	for _, m := range mistakes {
		_, err := m.make(t.TempDir())
		require.NoError(t, err)
		langs[m.lang]++
		for _, sc := range scenarios {
			proven[sc.name] = proven[sc.name] || m.concerns(sc.name)
		}
	}
	for _, lang := range []string{"", "go", "javascript", "python", "ruby"} {
		require.GreaterOrEqual(t, langs[lang], 2, "mistakes in %s", lang)
	}
	for _, sc := range scenarios {
		require.NotEqual(t, slices.Contains(unproven, sc.name), proven[sc.name], "%s: a wrong client must fail it, or it is unproven", sc.name)
	}
	moved := mistake{name: "moved", lang: "ruby", file: "millrace/control.rb", from: "no such text"}
	_, err := moved.make(t.TempDir())
	require.ErrorContains(t, err, `clients/ruby/lib/millrace/control.rb has "no such text" 0 times`)
}

func TestTableFails(t *testing.T) {
	sc := scenario{name: "happy"}
	cases := map[string]func(*table){
		"a trial was not made": func(*table) {},
		"a trial failed":       func(x *table) { x.note(planned{sc: sc, langs: []string{"go"}}, result{failure: "lost"}) },
		"a wrong worker passed": func(x *table) {
			x.note(planned{sc: sc, langs: []string{"go"}}, result{})
			x.note(planned{sc: sc, mistake: &mistake{says: "lost"}}, result{})
		},
	}
	for name, fill := range cases {
		x := &table{langs: []string{"go"}, scenarios: []scenario{sc}, cells: map[cell]result{}}
		fill(x)
		require.True(t, x.failed(), name)
	}
	x := &table{langs: []string{"go"}, scenarios: []scenario{sc}, cells: map[cell]result{}}
	x.note(planned{sc: sc, langs: []string{"go"}}, result{})
	x.note(planned{sc: sc, mistake: &mistake{says: "lost"}}, result{failure: "a job was lost"})
	require.False(t, x.failed())
}
