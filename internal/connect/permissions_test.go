package connect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
)

func TestGrantIsACommandForTheShell(t *testing.T) {
	require.Contains(t, Sidecar.Grant(broker.FeaturesOf(broker.LavinMQ, "2.9.1"), "/", "it's"), `lavinmqctl set_permissions --vhost '/' 'it'\''s'`)
}
