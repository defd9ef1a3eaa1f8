package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace-jobs/millrace/internal/cli/usage"
)

// confirmSettings are those of a command that destroys something.
type confirmSettings struct {
	Yes bool `short:"y" help:"Do it without asking. Needed where there is no terminal to ask on."`
}

// dryRunSettings are those of a command that can say first what it would do.
type dryRunSettings struct {
	DryRun bool `help:"Only say what it would do."`
}

var errDeclined = errors.New("nothing was changed")

// confirm asks on a terminal whether to do what a question says, such as "Purge 12 jobs of queue mails?". Without a terminal
// --yes must have been given.
func (s *confirmSettings) confirm(out output, format string, args ...any) error {
	if s.Yes {
		return nil
	}
	question := fmt.Sprintf(format, args...)
	if !out.interactive() {
		return usage.Errorf("%s There is no terminal to ask on: add --yes to do it", question)
	}
	if _, err := fmt.Fprintf(out.Err, "%s [y/N] ", question); err != nil {
		return err
	}
	said, err := bufio.NewReader(out.In).ReadString('\n')
	if err != nil { // the terminal was closed
		fmt.Fprintln(out.Err)
		return errDeclined
	}
	switch strings.ToLower(strings.TrimSpace(said)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}
