package output

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// Confirm is the flag of a command that destroys something.
type Confirm struct {
	Yes bool `short:"y" help:"Do it without asking. Needed where there is no terminal to ask on."`
}

var errDeclined = errors.New("nothing was changed")

// Ask asks on a terminal whether to do what a question says, such as "Purge 12 jobs of queue
// mails?". It returns an error unless the answer or --yes allows it.
func (c *Confirm) Ask(s Streams, format string, args ...any) error {
	if c.Yes {
		return nil
	}
	question := fmt.Sprintf(format, args...)
	if !s.interactive() {
		return usage.Errorf("%s There is no terminal to ask on: add --yes to do it", question)
	}
	if _, err := fmt.Fprintf(s.Err, "%s [y/N] ", question); err != nil {
		return err
	}
	reply, err := bufio.NewReader(s.In).ReadString('\n')
	if err != nil { // the terminal was closed
		fmt.Fprintln(s.Err)
		return errDeclined
	}
	switch strings.ToLower(strings.TrimSpace(reply)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}
