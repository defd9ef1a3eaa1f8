package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// tools are the programs of the peers.
type tools struct {
	repository string
	cache      string // .cache/peers
}

func newTools() (*tools, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(here, "bench", "peers")); err != nil {
		return nil, fmt.Errorf("run this in the repository's directory: %w", err)
	}
	t := &tools{repository: here, cache: filepath.Join(here, ".cache", "peers")}
	return t, os.MkdirAll(t.cache, 0o755)
}

// source returns the path of a file below bench/peers.
func (t *tools) source(parts ...string) string {
	return filepath.Join(append([]string{t.repository, "bench", "peers"}, parts...)...)
}

// node installs BullMQ, pg-boss and a Node.js for them, and returns the directory.
func (t *tools) node(ctx context.Context) (string, error) {
	dir := filepath.Join(t.cache, "node")
	wanted, err := os.ReadFile(t.source("node", "package-lock.json"))
	if err != nil {
		return "", err
	}
	if installed, err := os.ReadFile(filepath.Join(dir, "installed.json")); err == nil && string(installed) == string(wanted) {
		return dir, nil
	}
	fmt.Fprintln(os.Stderr, "installing from the npm registry into .cache/peers/node: BullMQ, pg-boss and Node.js")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, file := range []string{"package.json", "package-lock.json"} {
		content, err := os.ReadFile(t.source("node", file))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			return "", err
		}
	}
	if err := runIn(ctx, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"); err != nil {
		return "", err
	}
	return dir, os.WriteFile(filepath.Join(dir, "installed.json"), wanted, 0o644)
}

// celery installs Celery, and returns the Python that has it.
func (t *tools) celery(ctx context.Context) (string, error) {
	dir, wanted := filepath.Join(t.cache, "celery"), t.source("celery", "requirements.txt")
	python, installed := filepath.Join(dir, "bin", "python"), filepath.Join(dir, "installed.txt")
	content, err := os.ReadFile(wanted)
	if err != nil {
		return "", err
	}
	if found, err := os.ReadFile(installed); err == nil && string(found) == string(content) {
		return python, nil
	}
	fmt.Fprintln(os.Stderr, "installing from PyPI into .cache/peers/celery: Celery")
	if err := runIn(ctx, t.repository, nil, "python3", "-m", "venv", "--clear", dir); err != nil {
		return "", err
	}
	if err := runIn(ctx, t.repository, nil, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", wanted); err != nil {
		return "", err
	}
	return python, os.WriteFile(installed, content, 0o644)
}

// asynq builds the program of Asynq, with semaphores or without.
func (t *tools) asynq(ctx context.Context, dir string, more ...string) (string, error) {
	program := filepath.Join(dir, fmt.Sprint("asynq-", len(more)))
	args := append([]string{"build", "-o", program}, more...)
	return program, runIn(ctx, t.source("asynq"), []string{"GOWORK=off"}, "go", append(args, ".")...)
}

// runIn runs a command, and returns its output if it fails.
func runIn(ctx context.Context, dir string, environment []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w\n%s", name, args, err, output)
	}
	return nil
}
