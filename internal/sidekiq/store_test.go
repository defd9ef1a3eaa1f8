package sidekiq

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// startRedis runs a private Redis until the test ends, and returns its address.
func startRedis(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.NoError(t, l.Close())
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, "/usr/bin/redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir())
	require.NoError(t, cmd.Start(), "scripts/deps.sh imports installs it")
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	address := "127.0.0.1:" + port
	r := connect(t, address)
	brokertest.Eventually(t, func() bool {
		_, err := r.do(ctx, "PING")
		return err == nil
	}, "Redis answers")
	return address
}

// connect returns the server at an address.
func connect(t *testing.T, address string) *server {
	t.Helper()
	r, err := newServer("redis://" + address)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.close()) })
	return r
}

// must carries out a command, and returns its answer.
func (s *server) must(t *testing.T, command string, args ...any) any {
	t.Helper()
	answer, err := s.do(t.Context(), command, args...)
	require.NoError(t, err)
	return answer
}

func newStore(t *testing.T) *store {
	t.Helper()
	return &store{connect(t, startRedis(t)), "a"}
}

// A job leaves its place and enters the private list in one step. What Sidekiq has taken meanwhile
// is not taken.
func TestTake(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	_, err := s.lock(ctx)
	require.NoError(t, err)
	for n := range 5 {
		s.redis.must(t, "LPUSH", "queue:mails", fmt.Sprint("job", n))
		s.redis.must(t, "ZADD", "retry", 1795158930.25+float64(n), fmt.Sprint("job", n))
	}
	for _, from := range []source{listOf("mails"), {retries, "retry"}} {
		items, err := s.peek(ctx, from, 1, 3)
		require.NoError(t, err)
		require.Equal(t, []string{"job1", "job2", "job3"}, jobsOf(items), "those that are due first")
		if from.place == list {
			s.redis.must(t, "LREM", from.key, 1, "job2")
		} else {
			s.redis.must(t, "ZREM", from.key, "job2")
			require.Equal(t, "1795158931.25", items[0].score)
		}
		taken, err := s.take(ctx, from, items, 100)
		require.NoError(t, err)
		require.Equal(t, []string{"job1", "job3"}, jobsOf(taken))
		left, err := s.peek(ctx, from, 0, 10)
		require.NoError(t, err)
		require.Equal(t, []string{"job0", "job4"}, jobsOf(left))
		waiting, err := s.waiting(ctx, from, 10)
		require.NoError(t, err)
		require.Equal(t, taken, waiting, "in the order in which they came")

		require.NoError(t, s.settle(ctx, from, taken[:1]))
		require.NoError(t, s.putBack(ctx, from, taken[1]))
		waiting, err = s.waiting(ctx, from, 10)
		require.NoError(t, err)
		require.Empty(t, waiting)
		left, err = s.peek(ctx, from, 0, 10)
		require.NoError(t, err)
		require.ElementsMatch(t, []string{"job0", "job3", "job4"}, jobsOf(left))
		require.NoError(t, s.putBack(ctx, from, taken[0]), "what is gone is not put back")
		require.Len(t, left, 3)
	}
}

// Two jobs with the same bytes are two jobs.
func TestSameBytesTwice(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	_, err := s.lock(ctx)
	require.NoError(t, err)
	s.redis.must(t, "LPUSH", "queue:mails", "job", "job")
	items, err := s.peek(ctx, listOf("mails"), 0, 10)
	require.NoError(t, err)
	taken, err := s.take(ctx, listOf("mails"), items, 100)
	require.NoError(t, err)
	require.Len(t, taken, 2)
	require.NoError(t, s.settle(ctx, listOf("mails"), taken[:1]))
	waiting, err := s.waiting(ctx, listOf("mails"), 10)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
}

func TestLock(t *testing.T) {
	a, ctx := newStore(t), t.Context()
	b := &store{a.redis, "b"}
	has := func(s *store) bool {
		got, err := s.lock(ctx)
		require.NoError(t, err)
		return got
	}
	require.True(t, has(a))
	require.False(t, has(b))
	require.True(t, has(a), "it is kept")
	a.redis.must(t, "LPUSH", "queue:mails", "job")
	_, err := b.take(ctx, listOf("mails"), []item{{job: "job"}}, 100)
	require.ErrorIs(t, err, errLock)
	require.NoError(t, b.unlock(ctx), "b has none to release")
	require.False(t, has(b))
	require.NoError(t, a.unlock(ctx))
	require.True(t, has(b))
	taken, err := b.take(ctx, listOf("mails"), []item{{job: "job"}}, 100)
	require.NoError(t, err)
	require.Len(t, taken, 1)
	sources, err := a.taken(ctx)
	require.NoError(t, err)
	require.Equal(t, []source{listOf("mails")}, sources)
}

// A job is pushed once, however often that is tried.
func TestPushOnce(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	for range 2 {
		p := s.pushing("legacy", []byte("job"))
		for range 3 {
			require.NoError(t, p.try(ctx))
		}
	}
	require.EqualValues(t, 2, s.redis.must(t, "LLEN", "queue:legacy"))
	require.EqualValues(t, 1, s.redis.must(t, "SISMEMBER", "queues", "legacy"))
}

func jobsOf(items []item) (jobs []string) {
	for _, i := range items {
		jobs = append(jobs, i.job)
	}
	return jobs
}
