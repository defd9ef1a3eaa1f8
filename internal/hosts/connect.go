package hosts

import (
	"context"
	"fmt"
	"iter"
	"net"
	"strings"
	"time"
)

// Limits are the time limits for one address.
type Limits struct {
	Each time.Duration // if another address comes after it
	Only time.Duration // for the last address of a single host
}

// of returns the limit for one address when there are this many hosts.
func (l Limits) of(t numbered, hosts int) time.Duration {
	if hosts == 1 && t.last {
		return l.Only
	}
	return l.Each
}

// lookupWithin limits how long a name is looked up.
const lookupWithin = 3 * time.Second

type lookup func(ctx context.Context, name string) (addresses []string, err error)

// Connect tries all addresses of the hosts (host:port) in their order until connect succeeds, and
// records which one that was. Its error says why each failed, or that ctx ended.
func (o *Order) Connect(ctx context.Context, hosts []string, l Limits, connect func(context.Context, Target) error) error {
	var failures Errors
	note := func(t Target, err error) {
		if len(hosts) > 1 {
			err = fmt.Errorf("%s: %w", t.Host, err)
		}
		failures = append(failures, err)
	}
	for t, err := range o.targets(ctx, hosts) {
		if err == nil {
			err = within(ctx, l.of(t, len(hosts)), func(ctx context.Context) error { return connect(ctx, t.Target) })
		}
		switch {
		case err == nil:
			o.Good(t.Target)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		note(t.Target, err)
	}
	if len(failures) == 1 {
		return failures[0]
	}
	return failures
}

// within limits the time of an attempt.
func within(ctx context.Context, limit time.Duration, attempt func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := attempt(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no answer within %v: %w", limit, err)
	}
	return err
}

// Errors says why several addresses could not be reached.
type Errors []error

func (e Errors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap lets errors.Is and errors.As check each error.
func (e Errors) Unwrap() []error { return e }

// numbered is a target. last says whether it is the last one of its host.
type numbered struct {
	Target
	last bool
}

// targets looks up one host after another, each only when its turn comes. A host that is not found
// is returned with the error.
func (o *Order) targets(ctx context.Context, hosts []string) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		for _, host := range o.Sorted(hosts) {
			addresses, err := o.addresses(ctx, host)
			if err != nil {
				if !yield(numbered{Target: Target{Host: host}}, err) {
					return
				}
				continue
			}
			for i, address := range o.Sorted(addresses) {
				if !yield(numbered{Target{host, address}, i == len(addresses)-1}, nil) {
					return
				}
			}
		}
	}
}

// addresses looks up the addresses of a host:port.
func (o *Order) addresses(ctx context.Context, host string) ([]string, error) {
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(name) != nil {
		return []string{host}, nil
	}
	look := o.lookup
	if look == nil {
		look = net.DefaultResolver.LookupHost
	}
	var found []string
	err = within(ctx, lookupWithin, func(ctx context.Context) (err error) {
		found, err = look(ctx, name)
		return err
	})
	for i, address := range found {
		found[i] = net.JoinHostPort(address, port)
	}
	return unique(found), err
}
