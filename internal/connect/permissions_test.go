package connect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
)

func TestGrantIsAShellCommand(t *testing.T) {
	require.Contains(t, Sidecar.Grant(broker.FeaturesOf(broker.LavinMQ, "2.9.1"), "/", "it's"), `lavinmqctl set_permissions --vhost '/' 'it'\''s'`)
}

func TestRemedyOfEachRefusal(t *testing.T) {
	for reason, want := range map[string]string{
		broker.RefusedVHost: "create it: rabbitmqctl add_vhost 'v'", broker.RefusedAccess: "rabbitmqctl set_permissions --vhost 'v' 'ann'",
		"": "rabbitmqctl change_password 'ann' PASSWORD",
	} {
		require.Contains(t, RefusedRemedy(&broker.RefusedError{Reason: reason, User: "ann", VHost: "v"}), want)
	}
}
