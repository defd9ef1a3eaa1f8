package main

import (
	"context"
	"fmt"
	"io"
)

// wrong runs the deliberately wrong workers through the scenario that exists because of each, which they must fail.
func (s *suite) wrong(ctx context.Context, chosen []scenario, t *table, out io.Writer) {
	for scenario, mistake := range map[string]string{"confirm": "acks-first", "hostile": "re-encodes", "stop": "forgets"} {
		for _, sc := range chosen {
			if sc.name != scenario {
				continue
			}
			dir := "clients/conformance/wrong/" + mistake
			if err := s.build(ctx, dir+"/build"); err != nil {
				t.blind = append(t.blind, err.Error())
				continue
			}
			r := s.try(ctx, sc, client{name: mistake, dir: dir}, nil)
			if r.failure == "" {
				t.blind = append(t.blind, fmt.Sprintf("scenario %s passes with a worker that is wrong: %s", scenario, mistake))
			}
			fmt.Fprintf(out, "%-12s %-12s %6.1f s  %s\n", mistake, scenario, r.took.Seconds(), map[bool]string{true: "fails, as it must", false: "FAILED TO FAIL"}[r.failure != ""])
			fmt.Fprintln(s.log, r.failure)
		}
	}
}
