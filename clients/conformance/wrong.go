package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// wrong returns the trials of the wrong clients for the chosen scenarios and languages.
func (s *suite) wrong(langs []string, chosen []scenario) (plan []planned, err error) {
	for _, m := range mistakes {
		for _, sc := range chosen {
			if !m.concerns(sc.name) || m.lang != "" && !slices.Contains(langs, m.lang) {
				continue
			}
			c, err := m.make(s.tmp)
			if err != nil {
				return nil, err
			}
			plan = append(plan, planned{sc: sc, c: c, mistake: &m})
			if m.lang == "" {
				none := mistake{name: correct}
				if c, err = none.make(s.tmp); err != nil {
					return nil, err
				}
				plan = append(plan, planned{sc: sc, c: c, mistake: &none})
			}
		}
	}
	return plan, nil
}

// concerns reports whether a scenario must notice the mistake.
func (m *mistake) concerns(scenario string) bool {
	return scenario == m.scenario || scenario == m.also
}

// judge reports whether a wrong client failed as it must, and describes the result.
func (m *mistake) judge(name, scenario string, r result) (verdict string, asItMust bool) {
	switch {
	case m.says == "" && r.failure == "":
		return "ok: it makes no mistake", true
	case m.says == "":
		return fmt.Sprintf("scenario %s fails with a worker that makes no mistake: %s", scenario, r.failure), false
	case r.failure == "":
		return fmt.Sprintf("scenario %s passes with a client that is wrong: %s", scenario, name), false
	case !strings.Contains(r.failure, m.says):
		return fmt.Sprintf("scenario %s fails with %s, but not because of that (%q): %s", scenario, name, m.says, r.failure), false
	}
	return "fails, as it must: " + m.says, true
}

// copySources copies a folder, without what was installed or built in it.
func copySources(to, from string) error {
	return fs.WalkDir(os.DirFS(from), ".", func(path string, entry fs.DirEntry, err error) error {
		built := strings.HasPrefix(path, ".") && path != "." || slices.Contains([]string{"node_modules", "dist"}, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && built:
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o700)
		}
		text, err := os.ReadFile(filepath.Join(from, path))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), text, 0o600)
	})
}
