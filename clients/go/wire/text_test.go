package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckQueueName(t *testing.T) {
	for _, good := range []string{"default", "a b", "é", "queue.x", strings.Repeat("q", MaxQueueName)} {
		require.NoError(t, CheckQueueName(good))
	}
	for bad, reason := range map[string]string{"": "queue name is empty", "q\xff": "queue name is not valid UTF-8",
		"a\x00": "queue name has a control character", strings.Repeat("q", MaxQueueName+1): "queue name is 201 bytes long, at most 200 are allowed"} {
		require.EqualError(t, CheckQueueName(bad), reason)
	}
}

func TestProperty(t *testing.T) {
	for s, want := range map[string]string{"": "", "a": "a", "é": "é", "amqp-1.0": "", "\xff": "", strings.Repeat("a", 255): strings.Repeat("a", 255),
		strings.Repeat("a", 256): "", strings.Repeat("é", 128): ""} {
		require.Equal(t, want, Property(s))
	}
}

func TestTraceparent(t *testing.T) {
	good := "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	require.Equal(t, good, Traceparent(good))
	for _, v := range []any{nil, 17, int64(1), []byte(good), "é", "a\n", "a\x7f", strings.Repeat("a", 256)} {
		require.Empty(t, Traceparent(v), fmt.Sprint(v))
	}
}

func TestWithQueue(t *testing.T) {
	for job, want := range map[string]string{
		`{"class":"A"}`:                    `{"class":"A","queue":"q"}`,
		`{"class":"A","queue":null}`:       `{"class":"A","queue":"q"}`,
		`{"class":"A","queue":"own"}`:      `{"class":"A","queue":"own"}`,
		`{"args":[{"queue":"x"}],"b": 1 }`: `{"args":[{"queue":"x"}],"b": 1 ,"queue":"q"}`,
	} {
		got, err := WithQueue([]byte(job), "q")
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		got, err = WithQueue([]byte(job), "no\x00queue")
		require.NoError(t, err)
		require.Equal(t, job, string(got), "what no queue can be named is left out")
	}
	_, err := WithQueue([]byte(`{"queue":"a","queue":"b"}`), "q")
	require.EqualError(t, err, `member "queue" appears twice`)
}
