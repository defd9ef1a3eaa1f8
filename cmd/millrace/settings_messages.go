package main

import (
	"fmt"
	"regexp"
)

// messageSettings are the settings for delayed messages.
type messageSettings struct {
	DeliverTo string `name:"deliver-to" env:"MILLRACE_DELIVER_TO" placeholder:"REGEXP" help:"Deliver delayed messages to the exchanges whose whole names match, such as orders or 'shop\\..*'. Default: to none."`
}

// deliverTo returns what matches the names of the exchanges; nil matches none.
func (s *messageSettings) deliverTo() (*regexp.Regexp, error) {
	if s.DeliverTo == "" {
		return nil, nil
	}
	to, err := regexp.Compile("^(?:" + s.DeliverTo + ")$")
	if err != nil {
		return nil, fmt.Errorf("--deliver-to: %w", err)
	}
	return to, nil
}
