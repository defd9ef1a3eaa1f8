package flags

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/apiclient"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
)

func TestBrokerPasswordFromFile(t *testing.T) {
	b := Broker{AMQP: AMQP{AMQPURL: "amqp://ann@h:1,i/v", AMQPPasswordFile: clitest.File(t, "p@ss\n")}, ManagementURL: "http://m"}
	for range 2 { // kong may call it more than once
		require.NoError(t, b.AfterApply())
		require.Equal(t, "amqp://ann:p%40ss@h:1,i/v", b.AMQPURL)
		require.Equal(t, "http://ann:p%40ss@m", b.ManagementURL)
	}
	b.AMQPPassword = "x"
	require.ErrorContains(t, b.AfterApply(), "cannot be used together")
	b = Broker{AMQP: AMQP{AMQPURL: "amqp://h", AMQPUser: "b@b", AMQPPasswordFile: clitest.File(t, "p")}}
	for range 2 {
		require.NoError(t, b.AfterApply())
		require.Equal(t, "amqp://b%40b:p@h", b.AMQPURL)
	}
	b = Broker{AMQP: AMQP{AMQPURL: "amqp://ann:ann's@h", AMQPUser: "bob"}}
	require.ErrorContains(t, b.AfterApply(), "--amqp-user needs that user's password")
	b = Broker{AMQP: AMQP{AMQPURL: "amqp://ann@h", AMQPPasswordFile: "/nowhere"}}
	require.ErrorContains(t, b.AfterApply(), "--amqp-password-file")
}

func TestErrorsDoNotQuoteURLs(t *testing.T) {
	for _, b := range []Broker{{AMQP: AMQP{AMQPURL: "http://ann:s3cret@h"}}, {AMQP: AMQP{AMQPURL: "amqp://h"}, ManagementURL: "ftp://ann:s3cret@h"}} {
		err := b.AfterApply()
		require.ErrorContains(t, err, ": must be ")
		require.NotContains(t, err.Error(), "s3cret")
	}
}

func TestAPIClientFilesMustExist(t *testing.T) {
	amqp := &AMQP{AMQPURL: "amqp://ann:pw@h"}
	for _, s := range []SignIn{{APIURL: "ftp://x"}, {APITokenFile: "/nowhere"}, {APIPasswordFile: "/nowhere"}} {
		_, err := s.APIClient(apiclient.At("http", "127.0.0.1:1", ""), amqp).Overview(t.Context())
		require.Error(t, err)
		require.NotContains(t, err.Error(), "no sidecar answers")
	}
	s := SignIn{APIURL: "http://bob:x@localhost:1/pre/", APITokenFile: clitest.File(t, "t\n")}
	require.Equal(t, "http://localhost:1/pre", s.APIClient(apiclient.At("http", "else", ""), amqp).Address())
}
