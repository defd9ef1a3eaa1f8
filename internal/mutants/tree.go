package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// tree is a copy of the sources.
type tree struct{ dir string }

func copyTree(ctx context.Context) (*tree, error) {
	root, err := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the tree: %w", err)
	}
	from := strings.TrimSpace(string(root))
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = from
	files, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tree: %w", err)
	}
	t := &tree{}
	if t.dir, err = os.MkdirTemp("", "millrace-mutants-"); err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(files), "\x00"), "\x00") {
		// A file may be deleted without a commit.
		if err := copyFile(filepath.Join(from, name), filepath.Join(t.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, errors.Join(err, t.remove())
		}
	}
	return t, nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, raw, info.Mode().Perm())
}

func (t *tree) remove() error { return os.RemoveAll(t.dir) }

// try breaks the code as a variant says, runs its test, and restores the code.
func (t *tree) try(ctx context.Context, v variant) result {
	begun := time.Now()
	verdict, caught := t.verdict(ctx, v)
	return result{v, verdict, caught, time.Since(begun)}
}

func (t *tree) verdict(ctx context.Context, v variant) (verdict string, caught bool) {
	path, broken, err := codeIn(t.dir).mutated(v)
	if err != nil {
		return "DOES NOT APPLY: " + err.Error(), false
	}
	sound, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, broken, 0o600)
	}
	if err != nil {
		return "DOES NOT APPLY: " + err.Error(), false
	}
	defer func() { _ = os.WriteFile(path, sound, 0o600) }()
	if out, err := t.command(ctx, "vet", v.test.pkg); err != nil {
		return "DOES NOT COMPILE: " + string(out), false
	}
	out, err := t.test(ctx, v.test)
	switch {
	case err == nil:
		return "SURVIVED", false
	case !bytes.Contains(out, []byte("--- FAIL")) && !bytes.Contains(out, []byte("panic:")):
		return "THE TEST DID NOT RUN: " + string(out), false
	}
	return "caught", true
}

var errNoTest = errors.New("no test has this name")

// limit is the time limit of one test.
const limit = 10 * time.Minute

func (t *tree) test(ctx context.Context, test check) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	args := []string{"test", "-trimpath", "-count=1", test.pkg, "-run", "^(" + test.run + ")$"}
	out, err := t.command(ctx, append(args, test.args...)...)
	if err == nil && bytes.Contains(out, []byte("[no tests to run]")) {
		err = errNoTest
	}
	return out, err
}

func (t *tree) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = t.dir
	return cmd.CombinedOutput()
}
