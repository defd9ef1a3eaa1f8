package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const lists = `package a

import "errors"

type list struct{ numbers []int }

func (l *list) add(n int, more ...int) error {
	if n == 0 { // nothing to add
		return errors.New("zero")
	}
	l.numbers = append(
		l.numbers,
		n,
	)
	switch {
	case n > most:
		n = most
	case n < 0:
	}
	for _, n := range more {
		if err := l.add(n); err != nil {
			return err
		}
	}
	return nil
}

var (
	most = 9
	some = list{numbers: []int{1, 2}}
)
`

// mutateLists returns lists with the change of a variant.
func mutateLists(t *testing.T, in, from, to string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte(lists), 0o600))
	_, text, err := codeIn(dir).mutated(variant{in: in, from: from, to: to})
	return string(text), err
}

// Patterns call locals by other names than the code, and are formatted in another way.
func TestPatternsIgnoreNamesOfLocals(t *testing.T) {
	for _, c := range []struct{ in, from, to, was, is string }{
		{".list.add", "number == 0", "false", "n == 0", "(false)"},
		{".list.add", "x.numbers = append(x.numbers, y)", "x.numbers = append(x.numbers, y, y)",
			"l.numbers = append(\n\t\tl.numbers,\n\t\tn,\n\t)", "l.numbers = append(l.numbers, n, n)"},
		{".list.add", "if err := s.add(m); err != nil { return err }", "", "if err := l.add(n); err != nil {\n\t\t\treturn err\n\t\t}", ""},
		{".list.add", "if n == 0 {", "if n == most {", "if n == 0 {", "if n == most {"},
		{".list.add", "for _, m := range others {", "for _, m := range others[1:] {", "for _, n := range more {", "for _, n := range more[1:] {"},
		{".list.add", "case m > most:", "default:", "case n > most:", "default:"},
		{".list.add", "case m > most: m = most", "case m > most: m = -most", "case n > most:\n\t\tn = most", "case n > most: n = -most"},
		{".list.add", "most", "10", "", ""},
		{".some", "numbers: []int{1, 2}", "numbers: nil", "numbers: []int{1, 2}", "numbers: nil"},
		{".some", "1, 2", "2, 1", "1, 2", "2, 1"},
		{".most", "9", "8", "= 9", "= (8)"},
	} {
		text, err := mutateLists(t, c.in, c.from, c.to)
		if c.was == "" {
			require.ErrorContains(t, err, "2 times, not once", c.from)
			continue
		}
		require.NoError(t, err, c.from)
		require.Equal(t, strings.Replace(lists, c.was, c.is, 1), text)
	}
}

func TestPatternsWithoutTheirPlace(t *testing.T) {
	for _, c := range []struct{ in, from, to, says string }{
		{".list.sub", "n == 0", "false", "0 declarations of .list.sub"},
		{".list.add", "n == 1", "false", "0 times"},
		{".list.add", "n == n", "false", "0 times"},
		{".list.add", "most == 0", "false", "0 times"},
		{".list.add", "append(l.numbers, n...)", "nil", "0 times"},
		{".list.add", "a > b", "false", "0 times"},
		{".list.add", "", "false", "0 times"},
		{".list.add", "n == 0", "n == first", `has first, and what it replaces has not`},
		{".list.add", "n ==", "false", `"n =="`},
		{".list.add", "n == 0", "case", `"case"`},
		{".list.add", "n == 0", "return", "expected"},
	} {
		_, err := mutateLists(t, c.in, c.from, c.to)
		require.ErrorContains(t, err, c.says, "%s → %s", c.from, c.to)
	}
}

func TestCodeThatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte("func"), 0o600))
	_, err := codeIn(dir).find(".add")
	require.ErrorContains(t, err, "a.go")
	require.NoError(t, os.Remove(filepath.Join(dir, "a.go")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "b.go"), 0o755))
	_, err = codeIn(dir).find(".add")
	require.ErrorContains(t, err, "b.go")
}
