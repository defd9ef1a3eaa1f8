package hosts

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// If a host name can no longer be looked up while an attempt at it hangs, it is looked up again
// periodically. The race ends with its context.
func TestRaceLooksUpNamesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lookups := 0
		o := &Order{lookup: func(_ context.Context, name string) ([]string, error) {
			if lookups++; lookups > 1 {
				return nil, errors.New("no such host")
			}
			return []string{"192.0.2.1"}, nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := Race(ctx, o, []string{"a:1"}, Rules[string]{Patience: time.Second, Repeat: true}, func(ctx context.Context, _ Target) (string, error) {
			return "", hang(ctx)
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, lookups, 10)
	})
}

func TestRace(t *testing.T) {
	after := func(d time.Duration, err error) func(context.Context) error {
		return func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(d):
				return err
			}
		}
	}
	refused := errors.New("refused")
	for name, test := range map[string]struct {
		attempts attempt
		wins     string
		takes    time.Duration
		next     string // the target that is tried first from now on
		says     string
	}{
		"the first answers":           {attempt{"a:1": after(time.Second, nil)}, "a:1", time.Second, "a:1", ""},
		"the first refuses":           {attempt{"a:1": after(time.Second, refused), "b:1": accept}, "b:1", time.Second, "b:1", ""},
		"the first is silent":         {attempt{"a:1": hang, "b:1": accept}, "b:1", 3 * time.Second, "b:1", ""},
		"the first is slow":           {attempt{"a:1": after(5*time.Second, nil), "b:1": hang}, "a:1", 5 * time.Second, "a:1", ""},
		"two are silent":              {attempt{"a:1": hang, "b:1": hang, "c:1": accept}, "c:1", 6 * time.Second, "c:1", ""},
		"the second refuses":          {attempt{"a:1": hang, "b:1": after(time.Second, refused), "c:1": accept}, "c:1", 4 * time.Second, "c:1", ""},
		"all refuse":                  {attempt{"a:1": after(time.Second, refused), "b:1": refuse, "c:1": refuse}, "", time.Second, "", "a:1: refused; b:1: refused; c:1: refused"},
		"the first refuses after all": {attempt{"a:1": after(4*time.Second, refused), "b:1": after(7*time.Second, nil), "c:1": refuse}, "b:1", 10 * time.Second, "b:1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &Order{lookup: func(_ context.Context, name string) ([]string, error) { return []string{name}, nil }}
				all := []string{"a:1", "b:1", "c:1"}
				for _, host := range []string{"c:1", "b:1", "a:1"} {
					o.Good(at(host))
				}
				begun := time.Now()
				won, err := Race(t.Context(), o, all, Rules[string]{Patience: 3 * time.Second}, func(ctx context.Context, to Target) (string, error) {
					return to.Host, test.attempts[to.Host](ctx)
				})
				require.Equal(t, test.takes, time.Since(begun))
				if test.says != "" {
					require.EqualError(t, err, test.says)
					return
				}
				require.NoError(t, err)
				require.Equal(t, test.wins, won)
				require.Equal(t, test.next, o.Sorted(all)[0])
			})
		})
	}
}

func TestRaceEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := Race(ctx, new(Order), []string{"9.0.0.1:1", "9.0.0.2:1"}, Rules[int]{Patience: 3 * time.Second},
			func(ctx context.Context, _ Target) (int, error) { return 0, hang(ctx) })
		require.Equal(t, context.DeadlineExceeded, err)
	})
}

// If all nodes forward to a frozen one, all accept connections and none answers. A new attempt
// succeeds as soon as a node forwards elsewhere, while the earlier attempts still hang.
func TestRaceRepeats(t *testing.T) {
	const each, patience = 3500 * time.Millisecond, time.Second // no two events at the same time
	all := []string{"9.0.0.1:1", "9.0.0.2:1", "9.0.0.3:1"}
	for name, test := range map[string]struct {
		serves time.Duration // from when on an attempt succeeds
		refuse []string      // the others hang
		takes  time.Duration
		won    bool
	}{
		"between two attempts":        {3200 * time.Millisecond, nil, 4 * time.Second, true},
		"in the last attempt":         {5200 * time.Millisecond, nil, 5500 * time.Millisecond, false},
		"never, and two refuse":       {time.Hour, all[1:], each, false},
		"never, and all refuse":       {time.Hour, all, 0, false},
		"late, and the others refuse": {2500 * time.Millisecond, all[1:], 3 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, begun := &Order{}, time.Now()
				var attempts atomic.Int64
				_, err := Race(t.Context(), o, all, Rules[int]{Patience: patience, Repeat: true, Limits: Limits{Each: each}},
					func(ctx context.Context, to Target) (int, error) {
						attempts.Add(1)
						switch {
						case time.Since(begun) >= test.serves:
							return 0, nil
						case slices.Contains(test.refuse, to.Host):
							return 0, errors.New("refused")
						}
						return 0, hang(ctx)
					})
				require.Equal(t, test.takes, time.Since(begun))
				require.Equal(t, test.won, err == nil, "%v", err)
				require.LessOrEqual(t, attempts.Load(), int64(test.takes/patience)+int64(len(all)), "it does not spin")
			})
		})
	}
}

// A single host may be a load balancer, or a node that forwards to a frozen one. It is tried again
// too.
func TestRaceRepeatsWithOneHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := Rules[int]{Patience: time.Second, Repeat: true, Limits: Limits{Only: 15 * time.Second}}
		begun, serves := time.Now(), 9*time.Second
		attempt := func(ctx context.Context, _ Target) (int, error) {
			if time.Since(begun) >= serves {
				return 0, nil
			}
			return 0, hang(ctx)
		}
		_, err := Race(t.Context(), new(Order), []string{"9.0.0.1:1"}, rules, attempt)
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, time.Since(begun))

		serves = time.Hour
		_, err = Race(t.Context(), new(Order), []string{"9.0.0.1:1"}, rules, attempt)
		require.EqualError(t, err, "no answer within 15s: context deadline exceeded")
	})
}

// A success that comes too late is dropped.
func TestRaceDropsLateSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		var dropped []string
		won, err := Race(t.Context(), new(Order), []string{"9.0.0.1:1", "9.0.0.2:1"}, Rules[string]{Patience: time.Second, Drop: func(s string) { dropped = append(dropped, s) }},
			func(ctx context.Context, _ Target) (string, error) {
				if attempts.Add(1) == 1 {
					<-ctx.Done() // it succeeds nevertheless
					return "late", nil
				}
				return "first", nil
			})
		require.NoError(t, err)
		require.Equal(t, "first", won)
		require.Equal(t, []string{"late"}, dropped)
	})
}
