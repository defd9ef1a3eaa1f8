package crew

import (
	"fmt"
	"slices"
)

// Governed is what producers and workers of plain jobs have written down.
type Governed struct {
	Sure    []string // jobs that the broker has confirmed
	Refired int      // copies that a leader had fired again, because it could not know

	copies map[string][]string // the publishes of which copies came, by job
	again  map[string]bool     // jobs that a leader had fired again
}

// ReadGoverned reads the lines of producers and workers.
func ReadGoverned(path string) (*Governed, error) {
	lines, err := readLines(path)
	if err != nil {
		return nil, err
	}
	g := &Governed{copies: map[string][]string{}, again: map[string]bool{}}
	for _, fields := range lines {
		switch {
		case len(fields) == 2 && fields[0] == "sure":
			g.Sure = append(g.Sure, fields[1])
		case len(fields) == 4 && fields[0] == "got":
			g.got(fields[1], fields[2], fields[3])
		}
	}
	return g, nil
}

// got takes in a copy. The broker may give the same publish out again.
func (g *Governed) got(jid, op, publish string) {
	if !slices.Contains(g.copies[jid], publish) {
		g.copies[jid] = append(g.copies[jid], publish)
	}
	if op == "refired" {
		g.again[jid] = true
		g.Refired++
	}
}

// Missing returns the jobs that the broker has confirmed and that have not come.
func (g *Governed) Missing() (all []string) {
	for _, jid := range g.Sure {
		if len(g.copies[jid]) == 0 {
			all = append(all, jid)
		}
	}
	return all
}

// Twice returns the jobs of which several publishes came, although no leader fired them again.
func (g *Governed) Twice() (all []string) {
	for jid, copies := range g.copies {
		if len(copies) > 1 && !g.again[jid] {
			all = append(all, fmt.Sprintf("%s %v", jid, copies))
		}
	}
	return all
}
