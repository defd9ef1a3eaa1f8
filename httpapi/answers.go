package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/millrace-jobs/millrace/httpapi/problem"
)

const (
	cheap      = 10 * time.Millisecond // answers that take less are not kept
	keepFactor = 20                    // an answer is kept so many times as long as it took
	maxAnswers = 64
)

// answerCache keeps answers that look at many entries: what ten pages ask for is computed once.
type answerCache struct {
	flight singleflight.Group

	mu   sync.Mutex
	kept map[string]keptAnswer
}

type keptAnswer struct {
	answer any
	until  time.Time
}

// get returns an answer that may be as old as it is costly, or as atLeast.
func (a *answerCache) get(ctx context.Context, key string, atLeast time.Duration, create func(ctx context.Context) (any, error)) (any, error) {
	a.mu.Lock()
	known, ok := a.kept[key]
	a.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.answer, nil
	}
	answer, err, _ := a.flight.Do(key, func() (any, error) {
		began := time.Now()
		made, err := create(context.WithoutCancel(ctx)) // other requests wait for it too
		lasts := atLeast
		if took := time.Since(began); took > cheap {
			lasts = max(atLeast, took*keepFactor)
		}
		if err == nil && lasts > 0 {
			a.keep(key, made, lasts)
		}
		return made, err
	})
	return answer, err
}

func (a *answerCache) keep(key string, answer any, lasts time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if len(a.kept) >= maxAnswers {
		for k, old := range a.kept {
			if now.After(old.until) {
				delete(a.kept, k)
			}
		}
	}
	if a.kept == nil || len(a.kept) >= maxAnswers {
		a.kept = map[string]keptAnswer{}
	}
	a.kept[key] = keptAnswer{answer, now.Add(lasts)}
}

// share returns what is computed once for identical requests.
func (a *answerCache) share(in *problem.Request, create func(ctx context.Context) (any, error)) (any, error) {
	if in.Err() != nil {
		return nil, in.Err()
	}
	return a.get(in.Request().Context(), requestKey(in.Request()), 0, create)
}

func requestKey(r *http.Request) string { return r.URL.EscapedPath() + "?" + r.URL.RawQuery }
