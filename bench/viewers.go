package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	targetViewers = 0.05 // of one CPU, on an idle system
	viewersSettle = 3 * time.Second
)

// measureViewers lets many viewers follow the events of an idle system, and measures how much CPU
// that costs the sidecar.
func measureViewers(ctx context.Context, b *bench, v *vhost) (err error) {
	s, err := b.serveProcess(ctx, v)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	for range b.size.viewers {
		if err := follow(ctx, &watching, s.URL+"/api/events?topics=overview,queues,processes,scheduled,retries,dead,operations,jobs"); err != nil {
			return err
		}
	}
	pause(ctx, viewersSettle)
	share, _, err := watch(ctx, s.Pid(), b.size.idle)
	if err != nil {
		return err
	}
	b.table.addAlone(fmt.Sprintf("CPU for %d viewers of events while nothing happens", b.size.viewers), percent, atMost(targetViewers), share)
	return nil
}

// follow reads events until ctx ends. It returns when the first event has arrived.
func follow(ctx context.Context, watching *sync.WaitGroup, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errors.Join(fmt.Errorf("%s: %s", url, resp.Status), resp.Body.Close())
	}
	lines := bufio.NewReader(resp.Body)
	if _, err := lines.ReadString('\n'); err != nil {
		return errors.Join(err, resp.Body.Close())
	}
	watching.Go(func() {
		defer resp.Body.Close()
		for {
			if _, err := lines.ReadString('\n'); err != nil {
				return
			}
		}
	})
	return nil
}
