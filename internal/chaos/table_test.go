package chaos

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// row is the result of one scenario.
type row struct {
	name        string
	broker      string // product and version; a scenario that kills its broker may use another
	seed        uint64
	jobs        int // published, without the jobs of commands
	commanded   int
	faults      int // kills, cuts, deletions
	unconfirmed int // kills while fires were unconfirmed
	settling    int // kills while the new leader was catching up or settling
	lost        int
	doubled     int
	note        string
	took        time.Duration
	broken      []string // broken promises
}

var table results

type results struct {
	mu   sync.Mutex
	rows []row
}

func (r *results) add(one row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rows = append(r.rows, one)
}

// print prints all rows. For each row with a broken promise it prints how to repeat it.
func (r *results) print(to io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "scenario\tbroker\tjobs\tcommanded\tfaults\tunconfirmed\tsettling\tlost\tdoubled\ttook\tverdict\tnote")
	for _, one := range r.rows {
		verdict := "kept"
		if len(one.broken) > 0 {
			verdict = "BROKEN"
		}
		fmt.Fprintf(out, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\n", one.name, one.broker, one.jobs, one.commanded, one.faults, one.unconfirmed, one.settling,
			one.lost, one.doubled, one.took.Round(time.Second), verdict, one.note)
	}
	_ = out.Flush()
	for _, one := range r.rows {
		if len(one.broken) > 0 {
			fmt.Fprintf(to, "\n%s: %s\nrepeat, on %s: make chaos ARGS='-seed=%d -only=%s'\n", one.name, strings.Join(one.broken, "\n  "), one.broker, one.seed, one.name)
		}
	}
}
