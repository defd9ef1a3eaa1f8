package millrace

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/clients/go/wire"
)

// A job that is almost as large as a record leaves no room for the other members. It is rejected,
// with every outcome.
func TestTooLargeRecords(t *testing.T) {
	body := fmt.Appendf(nil, `{"class":"A","args":[%q]}`, strings.Repeat("x", wire.MaxRecord-100))
	require.LessOrEqual(t, len(body), wire.MaxRecord)
	job, err := parseJob(&amqp.Delivery{Body: body}, "q")
	require.NoError(t, err)
	for status, o := range map[string]outcome{
		wire.MetricDead: judge(job, Kill("no"), circumstances{now: time.Now()}), wire.MetricExpired: expire(job, time.Now()),
	} {
		require.True(t, o.reject, status)
		require.Nil(t, o.record, status)
		require.Empty(t, o.stream, status)
		require.Equal(t, status, o.status)
	}
}
