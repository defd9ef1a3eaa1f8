package doctor

import (
	"regexp"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/connect"
	"github.com/millrace-jobs/millrace/wire"
)

// delivering examines the broker for a sidecar that delivers to exchanges.
func delivering(t *testing.T, u *brokertest.User, to string) result {
	t.Helper()
	return examineFor(t, regexp.MustCompile("^(?:"+to+")$"), connect.Broker{AMQPURL: u.AMQPURL(), ManagementURL: u.ManagementURL()}, "table", nowhere, false)
}

func TestDoctorTriesExchangesOfMessages(t *testing.T) {
	v := brokertest.New(t)
	ch := v.Channel(t)
	require.Contains(t, delivering(t, v.Owner, "orders").out, "note  messages        the exchanges that --deliver-to matches are not tried")
	for _, name := range []string{wire.ExchangeDirect, "orders", "shop.eu", "secret"} {
		require.NoError(t, ch.ExchangeDeclare(name, "fanout", true, false, false, false, nil))
	}
	_, err := ch.QueueDeclare("mine", true, false, false, false, nil)
	require.NoError(t, err)
	require.NoError(t, ch.QueueBind("mine", "", "orders", false, nil))

	// The role of a sidecar does not let it write to other exchanges. The user need not read them.
	weak := v.AddUser(t, "weak", brokertest.Permissions{Configure: connect.Sidecar.Configure, Write: connect.Sidecar.Write + "|^orders$", Read: connect.Sidecar.Read, Tags: "policymaker,monitoring"})
	r := delivering(t, weak, `orders|shop\..*`)
	require.True(t, r.failed)
	require.Contains(t, r.out, "FAIL  messages        user "+weak.Name+" may not write to 1 exchange that --deliver-to matches: messages for shop.eu cannot be delivered")
	require.Contains(t, r.out, `set_permissions --vhost '`+v.Name+`' '`+weak.Name+`' '`+connect.Sidecar.Configure+`' '`+connect.Sidecar.Write+`|^(?:orders|shop\..*)$' '`)
	require.Contains(t, delivering(t, weak, "orders").out, "ok    messages        user "+weak.Name+" may write to the exchanges that --deliver-to matches: orders\n")
	require.Contains(t, delivering(t, v.Owner, ".*").out, "matches: orders, secret, shop.eu\n", "those of the broker are left out")
	require.Contains(t, delivering(t, v.Owner, "order").out, "note  messages        --deliver-to matches no exchange that exists")
	require.NotContains(t, delivering(t, v.Owner, "").out, "matches", "the default exchange always exists")
	require.NotContains(t, doctor(t, v.Owner).out, " messages  ")
	require.Contains(t, delivering(t, v.Owner, "orders").out, "note  messages        user "+v.Owner.Name+" does not have the tag impersonator: messages are delivered without their user_id")
	require.Contains(t, delivering(t, v.Owner, "orders").out, `set_user_tags '`+v.Owner.Name+`' policymaker monitoring impersonator`)
	own := v.AddUser(t, "own", brokertest.Permissions{Tags: "policymaker,monitoring,impersonator"})
	require.Contains(t, delivering(t, own, "orders").out, "ok    messages        user "+own.Name+" has the tag impersonator: messages keep their user_id")
	_, some := v.Get(t, "mine")
	require.False(t, some, "doctor published nothing")
}

func TestDoctorReportsMessagesThatNothingDelivers(t *testing.T) {
	v := brokertest.New(t)
	ch := v.Channel(t)
	_, err := ch.QueueDeclare("queue.millrace.messages", true, false, false, false, amqp.Table{"x-max-priority": 10})
	require.NoError(t, err)
	v.Publish(t, "", "queue.millrace.messages", amqp.Publishing{Body: []byte("{}")})
	brokertest.Eventually(t, func() bool {
		return matches(`note  messages        1 delayed message is due, and no sidecar delivers messages\n +→ start the sidecars with --deliver-to`, doctor(t, v.Owner).out)
	}, "the message is reported")
	require.Contains(t, delivering(t, v.Owner, "orders").out, "give each sidecar of the virtual host the setting --deliver-to")

	_, err = ch.Consume("queue.millrace.messages", "", false, false, false, false, nil)
	require.NoError(t, err)
	brokertest.Eventually(t, func() bool { return !matches(`no sidecar delivers`, doctor(t, v.Owner).out) }, "a consumer may deliver it")
}
