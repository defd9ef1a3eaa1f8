package cli

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/internal/cli/clitest"
	"github.com/millrace-jobs/millrace/internal/cli/output"
	"github.com/millrace-jobs/millrace/wire"
)

func TestUniqueKeysAreShownAndFreed(t *testing.T) {
	a := clitest.NewAPI(t, http.StatusOK, `[{"hash":"0123456789abcdef0123456789abcdef","key":"k","jid":"j","state":"period","since":1795831200,"until":1795834800}]`)
	r := millrace(t, "unique", "--key", "k", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	for _, want := range []string{"KEY", "k", "j", "period", "0123456789abcdef0123456789abcdef"} {
		require.Contains(t, r.out, want)
	}
	require.Equal(t, []string{"GET /api/unique-keys?key=k"}, a.Asked())
	a = clitest.NewAPI(t, http.StatusNoContent, "")
	r = millrace(t, "unique", "free", "0123456789abcdef0123456789abcdef", "--yes", "--reason", "r", "--http-addr", a.Addr())
	require.Zero(t, r.code, r.err)
	require.Equal(t, []string{`DELETE /api/unique-keys/0123456789abcdef0123456789abcdef application/json {"reason":"r"}`}, a.Asked())
}

// decides takes one unique job as a leader does, and answers it.
func decides(t *testing.T, v *brokertest.Vhost, reply string) (taken chan amqp.Delivery) {
	t.Helper()
	ch := v.Channel(t)
	inbox, err := ch.Consume(wire.Gated, "", true, true, false, false, nil)
	require.NoError(t, err)
	taken = make(chan amqp.Delivery, 1)
	go func() {
		d := <-inbox
		_ = ch.Publish("", d.ReplyTo, false, false, amqp.Publishing{CorrelationId: d.CorrelationId, Body: []byte(reply)})
		_ = ch.Close()
		taken <- d
	}()
	return taken
}

func TestUniqueJobsAreDecided(t *testing.T) {
	v := brokertest.New(t)
	_, err := v.Channel(t).QueueDeclare(wire.Gated, true, false, false, false, nil)
	require.NoError(t, err)
	for _, args := range [][]string{{"enqueue", "Mail", "--unique"}, {"schedule", "Mail", "--in", "1h", "--unique-key", "k"}} {
		args = append(args, "--amqp-url", v.AMQPURL())
		taken := decides(t, v, `{"status":201,"jid":"a"}`)
		r := millrace(t, args...)
		require.Zero(t, r.code, r.err)
		require.Equal(t, (<-taken).MessageId, strings.TrimSpace(r.out))
		require.Empty(t, r.err)

		decides(t, v, `{"status":200,"jid":"a","duplicate_of":"a"}`)
		r = millrace(t, args...)
		require.Zero(t, r.code, r.err)
		require.Equal(t, "a\n", r.out)
		require.Contains(t, r.err, "job a has the key, and the new job does not run")

		decides(t, v, `{"status":200,"jid":"a","duplicate_of":"a"}`)
		r = millrace(t, append(args, "-o", "json")...)
		require.Zero(t, r.code, r.err)
		require.JSONEq(t, `{"jid":"a","class":"Mail","queue":"default","duplicate_of":"a"}`, r.out)
		require.Empty(t, r.err)

		decides(t, v, `{"status":400,"reason":"it has no key"}`)
		r = millrace(t, args...)
		require.Equal(t, ExitFailed, r.code)
		require.Contains(t, r.err, "the leader refused the job: it has no key")

		r = millrace(t, append(args, "--no-wait")...)
		require.Zero(t, r.code, r.err)
		d := take(t, v, wire.Gated)
		require.Equal(t, d.MessageId, strings.TrimSpace(r.out))
		require.Empty(t, d.ReplyTo)
	}
}

func TestUndecidedJobsAreNotToBeRepeated(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := (&producer{}).decided(ctx, output.Streams{}, &job{JID: "a"}, nil)
	require.ErrorContains(t, err, "no leader has decided in time whether job a is a duplicate")
	require.ErrorContains(t, err, "do not enqueue it again")
	ended := make(chan wire.Delivery)
	close(ended)
	err = (&producer{}).decided(t.Context(), output.Streams{}, &job{JID: "a"}, ended)
	require.ErrorContains(t, err, "the connection to the broker ended before a leader had decided whether job a is a duplicate")
}

func TestUniqueFlags(t *testing.T) {
	for _, c := range []struct {
		flags jobFlags
		want  string
	}{
		{jobFlags{}, ""},
		{jobFlags{uniqueFlags: uniqueFlags{Unique: true}}, `{"unique":{}}`},
		{jobFlags{LimitKey: "c", uniqueFlags: uniqueFlags{UniqueKey: "k", UniqueFor: "1h", UniqueReplace: true}}, `{"key":"c","unique":{"key":"k","for":3600,"on":"replace"}}`},
		{jobFlags{uniqueFlags: uniqueFlags{UniqueBy: []string{"args.0"}, UniqueWaiting: true, UniqueWait: "30s", UniqueMax: "5m"}},
			`{"unique":{"by":["args.0"],"while":"waiting","wait":30,"max":300}}`},
	} {
		c.flags.Class, c.flags.Args, c.flags.Queue = "C", "[]", "q"
		j, err := c.flags.job(time.Now())
		require.NoError(t, err)
		if c.want == "" {
			require.Nil(t, j.Gate)
			continue
		}
		body, err := encode(j.Gate)
		require.NoError(t, err)
		require.Equal(t, c.want, string(body))
	}
	for _, wrong := range []uniqueFlags{{UniqueFor: "soon"}, {UniqueMax: "1h"}, {UniqueKey: "k", UniqueBy: []string{"args"}}, {UniqueBy: []string{"colour"}}} {
		f := jobFlags{Class: "C", Args: "[]", Queue: "q", uniqueFlags: wrong}
		_, err := f.job(time.Now())
		require.Error(t, err, "%+v", wrong)
	}
}
