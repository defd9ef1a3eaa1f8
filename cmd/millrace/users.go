package main

import (
	"context"
	"errors"
	"strings"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/auth"
)

// hasUsers tells whether there is a management API, which knows the broker's users.
func (s *sidecar) hasUsers() auth.HasUsers {
	if s.cfg.ManagementURL != "" { // somebody says that there is one
		return auth.UsersPresent
	}
	return auth.HasUsers(s.has.Load())
}

// noteUsers notes what an attempt to open the management API told. One that was there once is there for good: who could make it silent
// would else be asked for no password.
func (s *sidecar) noteUsers(err error) {
	if err == nil || broker.Unauthorized(err) { // it is there, even if it does not let Millrace in
		s.has.Store(int32(auth.UsersPresent))
		return
	}
	if s.has.CompareAndSwap(int32(auth.UsersUnsettled), int32(auth.UsersAbsent)) && s.cfg.auth() == "" && s.cfg.ManagementURL == "" && s.local {
		s.warnOpen()
	}
}

// warnOpen says that the API asks for no password.
func (s *sidecar) warnOpen() {
	who := "anyone who can connect"
	if s.local {
		who = "anyone on this machine"
	}
	s.log.Warn("millrace: auth=none: " + who + " can use the API; --auth and --management-url change that")
}

// identify asks the broker who a name and password belong to.
func (s *sidecar) identify(ctx context.Context, name, password string) (auth.User, error) {
	if s.foreign.Load() {
		return auth.User{}, errors.New("the management API that answers is another broker's: set --management-url")
	}
	as := s.users.As(name, password)
	user, err := as.WhoAmI(ctx)
	if err != nil {
		return auth.User{}, refusal(err)
	}
	may, err := as.MayUseVHost(ctx)
	return auth.User{Name: user.Name, Tags: user.Tags, VHost: may}, err
}

// refusal tells a wrong password from a user without a tag. RabbitMQ says which it is only in words.
func refusal(err error) error {
	var said *broker.StatusError
	switch {
	case errors.Is(err, broker.ErrUnproven), !broker.Unauthorized(err): // it was not the user's password that was refused
		return err
	case errors.As(err, &said) && strings.Contains(strings.ToLower(said.Reason), "management"):
		return auth.ErrNoTag
	}
	return auth.ErrWrongPassword
}
