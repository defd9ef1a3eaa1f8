package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/httpapi/auth"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/internal/pause"
)

// Variables, so that tests need not wait as long.
var (
	// managementTimeout is how long the sidecar waits for the management API when AMQP already
	// answers. A broker starts one after the other.
	managementTimeout = 5 * time.Second
	// managementEvery is how often the sidecar looks for it later.
	managementEvery = time.Minute
)

// otherBrokerChecks is how often a management API must be found to be another broker's. A node that
// is cut off from the others looks the same.
const otherBrokerChecks = 2

// management finds the broker's management API, and asks it who users are.
type management struct {
	broker connect.Broker
	log    *slog.Logger
	absent func() // called when it is first known that there is no management API

	current atomic.Pointer[broker.Management] // nil if there is none
	users   *broker.Management                // asks who users are
	has     atomic.Int32                      // an auth.HasUsers: whether there is one
	foreign atomic.Bool                       // what answers in its place is another broker's
}

func (m *management) open() (err error) {
	m.users, err = m.broker.NewManagement()
	return err
}

func (m *management) close() { m.users.Close() }

// await returns the management API, or nil if it does not answer in time. It returns a
// permanentError if --management-url names another broker's.
func (m *management) await(ctx context.Context) (*broker.Management, error) {
	ctx, cancel := context.WithTimeout(ctx, managementTimeout)
	defer cancel()
	for found := 0; ; {
		mgmt, err := m.broker.OpenManagement(ctx)
		other := connect.OtherBroker(err)
		if other != nil {
			found++
		}
		if found >= otherBrokerChecks && m.broker.ManagementURL != "" {
			return nil, &permanentError{err: other, remedy: connect.OtherBrokerRemedy(other)}
		}
		if err == nil || found >= otherBrokerChecks || broker.Unauthorized(err) || ctx.Err() != nil {
			m.note(err)
			return mgmt, nil
		}
		_ = pause.For(ctx, time.Second)
		if ctx.Err() != nil {
			m.note(err)
			return nil, nil
		}
	}
}

// awaitLate waits for a management API that did not answer at first. It returns nil when ctx ends.
func (m *management) awaitLate(ctx context.Context) *broker.Management {
	for {
		_ = pause.For(ctx, managementEvery)
		if ctx.Err() != nil {
			return nil
		}
		mgmt, err := m.broker.OpenManagement(ctx)
		if other := connect.OtherBroker(err); other != nil {
			m.drop(other)
			continue
		}
		m.noteUsers(err)
		if err == nil {
			m.foreign.Store(false)
			m.log.Info("millrace: the management API answers now; the scheduler starts again to use it")
			return mgmt
		}
	}
}

// note records the result of an attempt to open the management API.
func (m *management) note(err error) {
	m.noteUsers(err)
	if err == nil {
		return
	}
	if other := connect.OtherBroker(err); other != nil {
		m.drop(other)
		return
	}
	if broker.Unauthorized(err) {
		m.log.Warn("millrace: the management API refuses the user: "+m.broker.UnauthorizedRemedy()+". Until then "+connect.WithoutManagement, "error", err)
		return
	}
	m.log.Warn("millrace: no management API: "+connect.WithoutManagement+"; --management-url says where it is", "error", err)
}

// drop records that the management API is another broker's.
func (m *management) drop(other *broker.OtherBrokerError) {
	if !m.foreign.CompareAndSwap(false, true) {
		return
	}
	m.log.Warn("millrace: no management API: what answers is another broker's, and is not used; "+connect.WithoutManagement+
		". Set --management-url to the management API of this broker", "error", other)
}

// noteUsers records whether there is a management API. A management API that was there once counts
// as present for good. Otherwise, silencing it would let users in without a password.
func (m *management) noteUsers(err error) {
	if err == nil || broker.Unauthorized(err) { // it is there, even if it refuses Millrace
		m.has.Store(int32(auth.UsersPresent))
		return
	}
	if m.has.CompareAndSwap(int32(auth.UsersUnsettled), int32(auth.UsersAbsent)) {
		m.absent()
	}
}

// hasUsers reports whether there is a management API, which knows the broker's users.
func (m *management) hasUsers() auth.HasUsers {
	if m.broker.ManagementURL != "" { // a setting says that there is one
		return auth.UsersPresent
	}
	return auth.HasUsers(m.has.Load())
}

// identify asks the broker who a name and password belong to.
func (m *management) identify(ctx context.Context, name, password string) (auth.User, error) {
	if m.foreign.Load() {
		return auth.User{}, errors.New("the management API that answers is another broker's: set --management-url")
	}
	as := m.users.As(name, password)
	user, err := as.WhoAmI(ctx)
	if err != nil {
		return auth.User{}, signInError(err)
	}
	may, err := as.MayUseVHost(ctx)
	return auth.User{Name: user.Name, Tags: user.Tags, VHost: may}, err
}

// signInError distinguishes a wrong password from a user without a tag. RabbitMQ says which it is
// only in words.
func signInError(err error) error {
	var status *broker.StatusError
	switch {
	case errors.Is(err, broker.ErrUnproven), !broker.Unauthorized(err): // not the user's password was refused
		return err
	case errors.As(err, &status) && strings.Contains(strings.ToLower(status.Reason), "management"):
		return auth.ErrNoTag
	}
	return auth.ErrWrongPassword
}
