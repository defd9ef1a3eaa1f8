package brokertest

import (
	"net/http"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/broker"
)

// Features returns what this broker can do. If the broker lacks a feature, the test should assert
// what happens instead.
func (v *Vhost) Features(t T) broker.Features {
	t.Helper()
	var said struct {
		RabbitMQ string `json:"rabbitmq_version"`
		LavinMQ  string `json:"lavinmq_version"`
	}
	v.Do(t, http.MethodGet, "/api/overview", nil, &said)
	if said.LavinMQ != "" {
		return broker.FeaturesOf(broker.LavinMQ, said.LavinMQ)
	}
	require.NotEmpty(t, said.RabbitMQ, "which broker is this?")
	return broker.FeaturesOf(broker.RabbitMQ, said.RabbitMQ)
}
