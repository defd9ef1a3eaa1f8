package connect

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/hosts"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

func TestManagementURL(t *testing.T) {
	for given, want := range map[string]string{
		"amqp://localhost":           "http://guest:guest@localhost:15672",
		"amqp://ann:pw@h:5673/v":     "http://ann:pw@h:15673",
		"amqps://ann:pw@h/v":         "https://ann:pw@h:15671",
		"amqp://h:60000":             "http://guest:guest@h:15672",
		"amqp://ann:pw@b:2,[::1],a/": "http://ann:pw@b:10002,[::1]:15672,a:15672",
	} {
		require.Equal(t, want, (&Broker{AMQPURL: given}).Management(), given)
	}
	require.Equal(t, "http://m", (&Broker{AMQPURL: "amqp://h", ManagementURL: "http://m"}).Management())
}

func TestUnauthorizedRemedyNamesUser(t *testing.T) {
	require.Contains(t, (&Broker{AMQPURL: "amqp://ann:pw@h"}).UnauthorizedRemedy(), "rabbitmqctl set_user_tags 'ann' policymaker monitoring")
	require.Nil(t, OtherBroker(errors.New("else")))
	require.Contains(t, OtherBrokerRemedy(&broker.OtherBrokerError{AMQPHost: "h:5672"}), "of the broker at h:5672")
}

func TestOpenUsesFeaturesOfBroker(t *testing.T) {
	v := brokertest.New(t)
	v.DeclareStream(t, "job_journal")
	b := Broker{AMQPURL: v.AMQPURL(), ManagementURL: v.ManagementURL(), Hosts: &hosts.Order{}, Log: slog.New(slog.DiscardHandler)}
	mgmt, err := b.OpenManagement(t.Context())
	require.NoError(t, err)
	defer mgmt.Close()
	transport, address, err := b.OpenStreams(t.Context(), mgmt)
	require.NoError(t, err)
	defer transport.Close()
	require.Equal(t, v.Features(t).NativeStreamProtocol, address != "")
	conn, err := broker.Dial(t.Context(), b.Config("tests"))
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, b.FindOtherJournal(t.Context(), conn, transport, address))
	amqp, err := b.AwaitAMQPStreams(t.Context())
	require.NoError(t, err)
	require.NoError(t, amqp.Close())

	b.ManagementURL = "http://127.0.0.1:1"
	_, err = b.OpenManagement(t.Context())
	require.Error(t, err)
}
