package broker_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
)

// twins returns two brokers with the same virtual host, and in it the same user with all tags.
func twins(t *testing.T) (ours, theirs *brokertest.Vhost) {
	t.Helper()
	ours, theirs = brokertest.New(t), brokertest.Own(t)
	put(t, theirs, "/api/vhosts/"+ours.Name, `{}`)
	put(t, theirs, "/api/users/"+ours.Owner.Name, `{"password":"`+ours.Owner.Password+`","tags":"policymaker,monitoring"}`)
	put(t, theirs, "/api/permissions/"+ours.Name+"/"+ours.Owner.Name, `{"configure":".*","write":".*","read":".*"}`)
	return ours, theirs
}

// onlyOf returns the management API at a URL, restricted to the broker that AMQP reaches.
func onlyOf(t *testing.T, address string, v *brokertest.Vhost) *broker.Management {
	t.Helper()
	m, err := broker.NewManagement(address, v.Name, nil)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	m.OnlyOf(broker.Config{AMQPURL: v.AMQPURL()})
	return m
}

func TestManagementAPIOfAnotherBrokerIsNotUsed(t *testing.T) {
	ours, theirs := twins(t)
	foreign := at(t, theirs.ManagementURL(), ours)
	require.NoError(t, open(t, foreign, ours.Name).FindFeatures(soon(t)), "without the check, the API is accepted")

	m := onlyOf(t, foreign, ours)
	var other *broker.OtherBrokerError
	for range 2 {
		require.ErrorAs(t, m.FindFeatures(soon(t)), &other)
	}
	u, err := url.Parse(foreign)
	require.NoError(t, err)
	require.Equal(t, u.Host, other.Host)
	require.Regexp(t, `^(RabbitMQ|LavinMQ) \d\S+`, other.Broker)
	require.Contains(t, ours.AMQPURL(), "@"+other.AMQPHost+"/")
	require.Regexp(t, `^(RabbitMQ|LavinMQ) \d\S+`, other.AMQPBroker)
	_, err = m.Policies(soon(t))
	require.ErrorAs(t, err, &other)
	_, err = m.As(ours.Owner.Name, ours.Owner.Password).WhoAmI(soon(t))
	require.ErrorAs(t, err, &other, "a login there is refused too")
	var policies []any
	theirs.Do(t, http.MethodGet, "/api/policies/"+ours.Name, nil, &policies)
	require.Empty(t, policies)

	m = onlyOf(t, ours.ManagementURL(), ours)
	require.NoError(t, m.FindFeatures(soon(t)))
	require.NoError(t, m.CheckHosts(soon(t)))
	for range 3 { // in any order
		m = onlyOf(t, several(t, ours.ManagementURL(), foreign), ours)
		require.NoError(t, m.FindFeatures(soon(t)), "the host of our broker answers")
		require.ErrorAs(t, m.CheckHosts(soon(t)), &other)
		require.Equal(t, u.Host, other.Host)
	}
	m = onlyOf(t, several(t, ours.ManagementURL(), elsewhere(t, foreign, "127.0.0.1:1")), ours)
	require.NoError(t, m.CheckHosts(soon(t)), "a host that does not answer is no fault")
}

// A host of the management API that was unreachable may belong to another broker when it is back.
func TestReturningManagementAPIIsCheckedAgain(t *testing.T) {
	ours, theirs := twins(t)
	var backend atomic.Pointer[url.URL] // nil: the host does not answer
	lead := func(address string) {
		u, err := url.Parse(address)
		require.NoError(t, err)
		backend.Store(u)
	}
	var unknown atomic.Int64 // requests of a user's login that reached the other broker
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		to := backend.Load()
		if to == nil {
			panic(http.ErrAbortHandler) // ends the connection without an answer
		}
		if user, _, _ := r.BasicAuth(); user == "ann" && strings.Contains(theirs.ManagementURL(), to.Host) {
			unknown.Add(1)
		}
		forward(t, w, r, to)
	}))
	defer front.Close()
	m := onlyOf(t, at(t, front.URL, ours), ours)
	require.Error(t, m.FindFeatures(soon(t)), "the host does not answer yet")

	lead(ours.ManagementURL())
	require.NoError(t, m.FindFeatures(soon(t)))
	backend.Store(nil)
	require.Error(t, m.FindFeatures(soon(t)))
	lead(theirs.ManagementURL())
	var other *broker.OtherBrokerError
	_, err := m.As("ann", "secret").WhoAmI(soon(t))
	require.ErrorAs(t, err, &other)
	require.Zero(t, unknown.Load(), "a password went to the other broker")

	lead(ours.ManagementURL())
	require.NoError(t, m.FindFeatures(soon(t)), "the host may belong to our broker again")
}

// A user without access to the management API gets an error, and no answer of the API is used.
func TestUnprovenManagementAPIIsNotUsed(t *testing.T) {
	v := brokertest.New(t)
	tagless := v.AddUser(t, "tagless", brokertest.Permissions{})
	m := onlyOf(t, tagless.ManagementURL(), v)
	err := m.FindFeatures(soon(t))
	require.ErrorIs(t, err, broker.ErrUnproven)
	require.True(t, broker.Unauthorized(err))

	weak := v.AddUser(t, "weak", brokertest.Permissions{Configure: `^queue\.`, Tags: "monitoring"})
	m, err = broker.NewManagement(weak.ManagementURL(), v.Name, nil)
	require.NoError(t, err)
	t.Cleanup(m.Close)
	m.OnlyOf(broker.Config{AMQPURL: weak.AMQPURL()})
	err = m.FindFeatures(soon(t))
	require.ErrorIs(t, err, broker.ErrUnproven)
	require.ErrorContains(t, err, "declare a queue")
	require.False(t, broker.Unauthorized(err))
}
