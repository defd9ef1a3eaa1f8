package scheduler

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millrace-jobs/millrace/wire"
)

// leaseScene is a lease whose clock the test moves.
type leaseScene struct {
	*lease
	now time.Time
}

func newLeaseScene() *leaseScene {
	s := &leaseScene{now: time.Now()}
	s.lease = newLease(func() time.Time { return s.now })
	return s
}

func (s *leaseScene) pass(d time.Duration) { s.now = s.now.Add(d) }

func TestLeaseRunsFromPingSendTime(t *testing.T) {
	s := newLeaseScene()
	require.False(t, s.Fresh(), "no ping came back yet")
	n := s.Send()
	s.pass(2 * time.Second)
	s.Back(n)
	require.True(t, s.Fresh())
	require.Equal(t, 2*time.Second, s.Age())
	s.pass(499 * time.Millisecond)
	require.True(t, s.Fresh())
	s.pass(time.Millisecond)
	require.False(t, s.Fresh(), "2.5 s after the ping was sent")
}

func TestLeaseUsesNewestReturnedPing(t *testing.T) {
	s := newLeaseScene()
	first := s.Send()
	s.pass(2 * time.Second)
	second := s.Send()
	s.pass(time.Second)
	s.Back(first)
	require.False(t, s.Fresh())
	s.Back(second)
	require.True(t, s.Fresh())
	s.pass(leaseLasts - time.Second)
	s.Back(first) // delivered again
	require.False(t, s.Fresh(), "a ping renews the lease once")
	s.Back(s.number + 1)
	require.False(t, s.Fresh(), "this ping was never sent")
}

func TestLeaseIsLostWithoutPings(t *testing.T) {
	s := newLeaseScene()
	s.pass(leaseEnds)
	require.False(t, s.Lost(false))
	s.pass(time.Millisecond)
	require.True(t, s.Lost(false))

	s = newLeaseScene()
	s.Back(s.Send())
	s.pass(leaseEnds + time.Millisecond)
	require.True(t, s.Lost(false))
	s.Back(s.Send())
	require.False(t, s.Lost(false))
}

// A blocked connection is no reason to resign. After it is unblocked, pings need time to come back.
func TestLeaseIsNotLostWhileBlocked(t *testing.T) {
	s := newLeaseScene()
	s.Back(s.Send())
	for range 60 {
		s.pass(time.Second)
		require.False(t, s.Lost(true))
	}
	require.False(t, s.Fresh())
	s.pass(leaseEnds)
	require.False(t, s.Lost(false))
	s.pass(time.Millisecond)
	require.True(t, s.Lost(false))
}

func TestLeaseKeepsFewPings(t *testing.T) {
	s := newLeaseScene()
	for range 1000 {
		s.Send()
		s.pass(pingEvery)
	}
	require.Less(t, len(s.sent), 50)
}

func TestLeaseEndsBeforeSuccessorBegins(t *testing.T) {
	require.Less(t, leaseLasts+time.Second, wire.LeaderWait+time.Millisecond)
}

func TestLeaseReportsTimeWithoutPing(t *testing.T) {
	s := newLeaseScene()
	require.Zero(t, s.Unanswered())
	first := s.Send()
	s.pass(time.Second)
	second := s.Send()
	s.pass(time.Second)
	require.Equal(t, 2*time.Second, s.Unanswered())
	s.Back(first)
	require.Equal(t, time.Second, s.Unanswered())
	s.Back(second)
	require.Zero(t, s.Unanswered())
}
