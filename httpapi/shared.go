package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/singleflight"
)

const (
	cheap     = 10 * time.Millisecond // what takes less is made for everybody
	worth     = 20                    // an answer serves for so many times as long as it took to make: making them takes a twentieth of a core at most
	maxShared = 64                    // answers that are kept
)

// shared keeps answers that look at many entries for whoever asks the same: what ten pages ask for is made once.
type shared struct {
	making singleflight.Group

	mu   sync.Mutex
	made map[string]sharedAnswer
}

type sharedAnswer struct {
	answer any
	until  time.Time
}

// get gives an answer that may be as old as it is dear, or as atLeast.
func (s *shared) get(ctx context.Context, key string, atLeast time.Duration, create func(ctx context.Context) (any, error)) (any, error) {
	s.mu.Lock()
	known, ok := s.made[key]
	s.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.answer, nil
	}
	answer, err, _ := s.making.Do(key, func() (any, error) {
		began := time.Now()
		made, err := create(context.WithoutCancel(ctx)) // others wait for it too
		lasts := atLeast
		if took := time.Since(began); took > cheap {
			lasts = max(atLeast, took*worth)
		}
		if err == nil && lasts > 0 {
			s.keep(key, made, lasts)
		}
		return made, err
	})
	return answer, err
}

func (s *shared) keep(key string, answer any, lasts time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if len(s.made) >= maxShared {
		for k, a := range s.made {
			if now.After(a.until) {
				delete(s.made, k)
			}
		}
	}
	if s.made == nil || len(s.made) >= maxShared {
		s.made = map[string]sharedAnswer{}
	}
	s.made[key] = sharedAnswer{answer, now.Add(lasts)}
}

// share answers with what is made for all who ask the same.
func (s *Server) share(c echo.Context, create func(ctx context.Context) (any, error)) error {
	answer, err := s.shared.get(c.Request().Context(), sharedKey(c.Request()), 0, create)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

// sharedKey is the same for all who ask the same.
func sharedKey(r *http.Request) string { return r.URL.EscapedPath() + "?" + r.URL.RawQuery }
