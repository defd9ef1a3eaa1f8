package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each variant applies. So a change of the code that a variant breaks is found immediately, and not
// in the next run of all variants.
func TestEveryVariantApplies(t *testing.T) {
	require.GreaterOrEqual(t, len(variants), 10)
	all := codeIn(filepath.Join("..", ".."))
	names := map[string]bool{}
	for _, v := range variants {
		require.False(t, names[v.name], v.name)
		names[v.name] = true
		_, _, err := all.mutated(v)
		if err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
	}
}

// example returns a tree with one function and its test.
func example(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example\n\ngo 1.26\n",
		"a.go":      "package a\n\nfunc two() int { return 2 }\n",
		"a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n\tif two() < 2 {\n\t\tt.Fatal()\n\t}\n}\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// A variant of a tree with one function and its test is caught, or survives.
func TestVariantIsCaughtOrSurvives(t *testing.T) {
	dir := &tree{example(t)}
	test := check{".", "TestTwo", nil}
	_, err := dir.test(t.Context(), test)
	require.NoError(t, err)
	for _, c := range []struct {
		from, to, verdict string
		caught            bool
	}{
		{"return 2", "return 1", "^caught", true},
		{"return 2", "return 3", "^SURVIVED", false},
		{"return 2", "return nil", "^DOES NOT COMPILE", false},
		{"return 4", "return 3", "^DOES NOT APPLY", false},
	} {
		r := dir.try(t.Context(), variant{in: ".two", from: c.from, to: c.to, test: test})
		require.Regexp(t, c.verdict, r.verdict)
		require.Equal(t, c.caught, r.caught)
	}
	_, err = dir.test(t.Context(), check{".", "TestTw", nil})
	require.ErrorIs(t, err, errNoTest)
	r := dir.try(t.Context(), variant{in: "b.two", test: test})
	require.Regexp(t, "^DOES NOT APPLY", r.verdict)
}

// A run on a repository succeeds if all variants are caught. It leaves the repository unchanged.
func TestWholeRun(t *testing.T) {
	dir := example(t)
	t.Chdir(dir)
	test := check{".", "TestTwo", nil}
	caught := variant{"caught", "what is tested", ".two", "return 2", "return 1", test}
	survives := variant{"survives", "what is not", ".two", "return 2", "return 3", test}
	all := []variant{caught, survives}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	require.ErrorContains(t, run(t.Context(), all, ""), "finding the tree")
	require.NoError(t, exec.Command("git", "init", "-q").Run())
	require.NoError(t, exec.Command("git", "add", "a.go", "a_test.go").Run())
	require.ErrorIs(t, run(t.Context(), all, ""), errSurvived)
	require.Zero(t, command([]string{"-only=caught,none of this name"}, all))
	require.Equal(t, 1, command([]string{"-only=survives"}, all))
	require.Equal(t, 2, command([]string{"-all"}, all))

	code, err := os.ReadFile("a.go")
	require.NoError(t, err)
	require.Contains(t, string(code), "return 2")
	require.NoError(t, os.WriteFile("a.go", bytes.Replace(code, []byte("2"), []byte("1"), 1), 0o600))
	require.ErrorContains(t, run(t.Context(), all, "caught"), "fails on the code as it is", "a test that always fails catches nothing")
	require.NoError(t, os.Remove("a.go"))
	require.ErrorContains(t, run(t.Context(), all, "caught"), "fails on the code as it is", "a file that was deleted is not copied")
	require.NoError(t, os.Mkdir("a.go", 0o755))
	require.ErrorContains(t, run(t.Context(), all, "caught"), "a.go", "a file that cannot be copied is not left out")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, run(ended, all, ""))
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	require.Empty(t, left, "the copies are gone")
}
