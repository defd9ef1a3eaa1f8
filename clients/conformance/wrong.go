package main

import (
	"fmt"
	"strings"
)

// mistake is what a deliberately wrong worker does, and what the scenario that exists because of it must say of that. A failure for
// another reason proves nothing.
type mistake struct {
	name, scenario, says string
}

var mistakes = []mistake{
	{"acks-first", "confirm", "the broker still has both jobs"},
	{"re-encodes", "hostile", "do not come back byte for byte"},
	{"forgets", "stop", "both are back"},
}

// correct is the same worker without a mistake: it passes, so a mistake's failure is the mistake's.
const correct = "no-mistake"

func wrongWorker(name string) client {
	return client{name: name, dir: "clients/conformance/wrong/" + name}
}

// wrong are the trials of the deliberately wrong workers that belong to the chosen scenarios.
func wrong(chosen []scenario) (plan []planned) {
	for _, m := range mistakes {
		for _, sc := range chosen {
			if sc.name == m.scenario {
				plan = append(plan, planned{sc: sc, c: wrongWorker(m.name), mistake: &m}, planned{sc: sc, c: wrongWorker(correct), mistake: &mistake{}})
			}
		}
	}
	return plan
}

// judge tells whether a wrong worker fared as it must.
func (m *mistake) judge(name, scenario string, r result) (verdict string, asItMust bool) {
	switch {
	case m.says == "" && r.failure == "":
		return "ok: it makes no mistake", true
	case m.says == "":
		return fmt.Sprintf("scenario %s fails with a worker that makes no mistake: %s", scenario, r.failure), false
	case r.failure == "":
		return fmt.Sprintf("scenario %s passes with a worker that is wrong: %s", scenario, name), false
	case !strings.Contains(r.failure, m.says):
		return fmt.Sprintf("scenario %s fails with %s, but not because of that (%q): %s", scenario, name, m.says, r.failure), false
	}
	return "fails, as it must: " + m.says, true
}
