package broker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
)

// The answers are quoted from brokers.
func TestReasonsOfRefusals(t *testing.T) {
	for _, c := range []struct {
		code   int
		text   string
		reason string
	}{
		{404, "NOT_FOUND - no queue 'q' in vhost '/'", ReasonMissing},
		{404, "NOT_FOUND - no exchange 'jobs.direct' in vhost '/'", ReasonMissing},
		{404, "NOT_FOUND - home node 'a@b' of durable queue 'job_journal' in vhost '/' is down or inaccessible", ReasonDown},
		{404, "NOT_FOUND - a text that no broker sends", ReasonDown},
		{404, "NOT_FOUND - Queue 'q' doesn't exists", ReasonMissing},              // LavinMQ
		{404, "NOT_FOUND - Queue 'q' not found", ReasonMissing},                   // LavinMQ, bind
		{404, "NOT_FOUND - Exchange 'jobs.direct' doesn't exists", ReasonMissing}, // LavinMQ
		{405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'", ReasonExclusive},
		{406, "PRECONDITION_FAILED - cannot declare queue 'q': queue limit in vhost '/' (1) is reached", ReasonLimit},
		{403, "ACCESS_REFUSED - queue limit in vhost '/' (1) is reached", ReasonLimit}, // LavinMQ
		{403, "ACCESS_REFUSED - configure access to queue 'q' in vhost '/' refused for user 'u'", ReasonAccess},
		{406, "PRECONDITION_FAILED - queue 'q' in vhost '/' in use", ReasonInUse},
		{406, "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty", ReasonNotEmpty},
		{406, "PRECONDITION_FAILED - Queue 'q' is not empty", ReasonNotEmpty}, // LavinMQ
		{406, "PRECONDITION_FAILED - Queue name isn't valid", ReasonName},     // LavinMQ
		{406, "PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue", ReasonRefused},
	} {
		answer := &amqp.Error{Code: c.code, Reason: c.text, Server: true}
		err := queueError("q", answer)
		require.Equal(t, c.reason, reasonOf(err), c.text)
		require.ErrorIs(t, err, answer)
		require.ErrorContains(t, err, c.text)
	}
	require.NoError(t, queueError("q", nil))
	lost := fmt.Errorf("%w: %w", ErrLost, &amqp.Error{Code: 405})
	require.Empty(t, reasonOf(queueError("q", lost)), "the end of the connection is no answer about the queue")
	require.Empty(t, reasonOf(queueError("q", errors.New("other"))))
}

func TestErrorsOfEndedConnections(t *testing.T) {
	require.ErrorIs(t, endOf("x", true, &amqp.Error{}), ErrClosed)
	require.ErrorIs(t, endOf("x", false, nil), ErrLost)
	full := endOf("x", false, &amqp.Error{Code: 406, Reason: "PRECONDITION_FAILED - Server low on disk space"})
	require.ErrorIs(t, full, ErrLost)
	require.ErrorIs(t, full, ErrAlarm)
}

func TestUnavailableQueues(t *testing.T) {
	answer := func(code int, text string) error {
		return fmt.Errorf("broker: %w", &amqp.Error{Code: code, Reason: text})
	}
	for _, c := range []struct {
		err  error
		away bool
		node string
	}{
		{answer(404, "NOT_FOUND - home node 'rabbit@b' of durable queue 'jobs.letters' in vhost '/' is down or inaccessible"), true, "rabbit@b"},
		{answer(404, "NOT_FOUND - failed to perform operation on queue 'jobs.boot.x' in vhost '/' due to timeout"), true, ""},
		{answer(404, "NOT_FOUND - queue 'jobs.letters' in vhost '/' process is stopped by supervisor"), true, ""},
		{answer(404, "NOT_FOUND - queue 'jobs.letters' in vhost '/' has crashed and failed to restart"), true, ""},
		{fmt.Errorf("broker: queue x: %w", context.DeadlineExceeded), true, ""},
		{answer(404, "NOT_FOUND - no queue 'jobs.letters' in vhost '/'"), false, ""},
		{answer(406, "PRECONDITION_FAILED - inequivalent arg 'x-queue-type'"), false, ""},
		{answer(403, "ACCESS_REFUSED"), false, ""},
		{fmt.Errorf("%w: %w", ErrLost, &amqp.Error{Code: 404, Reason: "NOT_FOUND - ..."}), false, ""},
		{context.Canceled, false, ""},
		{nil, false, ""},
	} {
		require.Equal(t, c.away, IsAway(c.err), "%v", c.err)
		require.Equal(t, c.node, AwayNode(c.err), "%v", c.err)
	}
}

func TestTypeThatRefusedPriorities(t *testing.T) {
	for text, want := range map[string]string{
		"PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue 'queue.a' in vhost '/' of queue type rabbit_quorum_queue": "quorum",
		"PRECONDITION_FAILED - invalid arg 'x-max-priority' for queue 'queue.a' in vhost '/' of queue type rabbit_stream_queue": "stream",
		"PRECONDITION_FAILED - inequivalent arg 'x-max-priority' for queue 'queue.a' in vhost '/': received none":               "",
	} {
		require.Equal(t, want, typeThatRefused(queueError("q", &amqp.Error{Code: 406, Reason: text})), text)
	}
	require.Empty(t, typeThatRefused(nil))
	require.Empty(t, typeThatRefused(errors.New("other")))
}
