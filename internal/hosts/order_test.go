package hosts

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func at(host string) Target { return Target{host, host} }

func TestOrderIsRandomAndStays(t *testing.T) {
	all := []string{"a:1", "b:1", "c:1"}
	seen := map[string]bool{}
	for range 1000 {
		var o Order
		first := o.Sorted(all)
		require.ElementsMatch(t, all, first)
		require.Equal(t, first, o.Sorted(all))
		seen[first[0]] = true
	}
	require.ElementsMatch(t, all, slices.Collect(maps.Keys(seen)))
}

func TestLastGoodHostIsFirstAndLostOneLast(t *testing.T) {
	all := []string{"a:1", "b:1", "c:1", "d:1"}
	var o Order
	o.Good(at("b:1"))
	o.Good(at("c:1"))
	require.Equal(t, []string{"c:1", "b:1"}, o.Sorted(all)[:2])
	o.Lost(at("c:1"))
	o.Lost(at("b:1"))
	require.Equal(t, []string{"c:1", "b:1"}, o.Sorted(all)[2:])
	o.Good(at("b:1"))
	require.Equal(t, "b:1", o.Sorted(all)[0])
	require.Equal(t, at("b:1"), o.Current())
}

func TestNearHostIsFirstUnlessLost(t *testing.T) {
	amqp := &Order{}
	o := &Order{Near: amqp}
	all := []string{"a:2", "b:2", "10.0.0.3:2"}
	o.Good(at("b:2"))
	amqp.Good(at("a:1"))
	require.Equal(t, []string{"a:2", "b:2"}, o.Sorted(all)[:2])
	amqp.Good(Target{"c:1", "10.0.0.3:1"})
	require.Equal(t, []string{"10.0.0.3:2", "b:2"}, o.Sorted(all)[:2])
	o.Lost(at("10.0.0.3:2"))
	require.Equal(t, "10.0.0.3:2", o.Sorted(all)[2])
}

// attempt has the result of a connection attempt for each address.
type attempt map[string]func(context.Context) error

func refuse(context.Context) error { return errors.New("refused") }

func accept(context.Context) error { return nil }

func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

var limits = Limits{Each: 3 * time.Second, Only: 15 * time.Second}

func TestConnect(t *testing.T) {
	names := map[string][]string{"two": {"10.0.0.1", "10.0.0.2"}, "one": {"10.0.0.3"}}
	for name, test := range map[string]struct {
		hosts    []string
		attempts attempt
		takes    time.Duration
		gets     string
		says     string
	}{
		"one that answers":         {[]string{"one:1"}, attempt{"10.0.0.3:1": accept}, 0, "10.0.0.3:1", ""},
		"one that refuses":         {[]string{"one:1"}, attempt{"10.0.0.3:1": refuse}, 0, "", "refused"},
		"one that hangs":           {[]string{"one:1"}, attempt{"10.0.0.3:1": hang}, 15 * time.Second, "", "no answer within 15s: context deadline exceeded"},
		"dead, then live":          {[]string{"9.0.0.1:1", "one:1"}, attempt{"9.0.0.1:1": refuse, "10.0.0.3:1": accept}, 0, "10.0.0.3:1", ""},
		"silent, then live":        {[]string{"9.0.0.1:1", "one:1"}, attempt{"9.0.0.1:1": hang, "10.0.0.3:1": accept}, 3 * time.Second, "10.0.0.3:1", ""},
		"name that is not found":   {[]string{"none:1", "one:1"}, attempt{"10.0.0.3:1": accept}, 0, "10.0.0.3:1", ""},
		"slow name":                {[]string{"slow:1", "one:1"}, attempt{"10.0.0.3:1": accept}, 3 * time.Second, "10.0.0.3:1", ""},
		"second address of a name": {[]string{"two:1"}, attempt{"10.0.0.1:1": hang, "10.0.0.2:1": accept}, 3 * time.Second, "10.0.0.2:1", ""},
		"none":                     {[]string{"9.0.0.1:1", "none:1"}, attempt{"9.0.0.1:1": hang}, 3 * time.Second, "", "9.0.0.1:1: no answer within 3s: context deadline exceeded; none:1: unknown name"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := &Order{lookup: func(ctx context.Context, name string) ([]string, error) {
					if name == "slow" {
						return nil, hang(ctx)
					}
					if found := names[name]; found != nil {
						return slices.Clone(found), nil
					}
					return nil, errors.New("unknown name")
				}}
				// Afterwards they are tried in the given order.
				for _, first := range slices.Backward(append(test.hosts, names["two"]...)) {
					if !strings.Contains(first, ":") {
						first += ":1"
					}
					o.Good(at(first))
				}
				begun := time.Now()
				var got Target
				err := o.Connect(t.Context(), test.hosts, limits, func(ctx context.Context, to Target) error {
					got = to
					return test.attempts[to.Address](ctx)
				})
				require.Equal(t, test.takes, time.Since(begun))
				if test.gets == "" {
					require.EqualError(t, err, test.says)
					return
				}
				require.NoError(t, err)
				require.Equal(t, test.gets, got.Address)
				require.Equal(t, got, o.Current())
			})
		})
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := new(Order).Connect(ctx, []string{"9.0.0.1:1", "9.0.0.2:1"}, limits, func(ctx context.Context, _ Target) error { return hang(ctx) })
		require.Equal(t, context.DeadlineExceeded, err)
	})
}

func TestAnotherAddressIsFirstAfterLoss(t *testing.T) {
	o := &Order{lookup: func(context.Context, string) ([]string, error) { return []string{"10.0.0.1", "10.0.0.2"}, nil }}
	connect := func() (got Target) {
		require.NoError(t, o.Connect(t.Context(), []string{"two:1"}, limits, func(_ context.Context, to Target) error {
			got = to
			return nil
		}))
		return got
	}
	first := connect()
	require.Equal(t, first, connect())
	o.Lost(first)
	require.NotEqual(t, first, connect())
}
