package sidekiq

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/internal/brokertest"
)

func TestMain(m *testing.M) { brokertest.Main(m) }

// startRedis runs a private Redis until the test ends.
func startRedis(t *testing.T) *redis.Options {
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
	options := &redis.Options{Addr: "127.0.0.1:" + port}
	client := redis.NewClient(options)
	defer client.Close()
	brokertest.Eventually(t, func() bool { return client.Ping(ctx).Err() == nil }, "Redis answers")
	return options
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{redis.NewClient(startRedis(t)), "a"}
	t.Cleanup(func() { require.NoError(t, s.redis.Close()) })
	return s
}

// A job leaves its place and enters the private list in one step. What Sidekiq has taken meanwhile
// is not taken.
func TestTake(t *testing.T) {
	s, ctx := newStore(t), t.Context()
	_, err := s.lock(ctx)
	require.NoError(t, err)
	for n := range 5 {
		require.NoError(t, s.redis.LPush(ctx, "queue:mails", fmt.Sprint("job", n)).Err())
		require.NoError(t, s.redis.ZAdd(ctx, "retry", redis.Z{Score: 1795158930.25 + float64(n), Member: fmt.Sprint("job", n)}).Err())
	}
	for _, from := range []source{listOf("mails"), {retries, "retry"}} {
		items, err := s.peek(ctx, from, 1, 3)
		require.NoError(t, err)
		require.Equal(t, []string{"job1", "job2", "job3"}, jobsOf(items), "those that are due first")
		if from.place == list {
			require.NoError(t, s.redis.LRem(ctx, from.key, 1, "job2").Err())
		} else {
			require.NoError(t, s.redis.ZRem(ctx, from.key, "job2").Err())
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
	require.NoError(t, s.redis.LPush(ctx, "queue:mails", "job", "job").Err())
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
	require.NoError(t, a.redis.LPush(ctx, "queue:mails", "job").Err())
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
	require.EqualValues(t, 2, s.redis.LLen(ctx, "queue:legacy").Val())
	require.True(t, s.redis.SIsMember(ctx, "queues", "legacy").Val())
}

func jobsOf(items []item) (jobs []string) {
	for _, i := range items {
		jobs = append(jobs, i.job)
	}
	return jobs
}
