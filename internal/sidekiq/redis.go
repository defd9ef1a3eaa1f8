package sidekiq

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"time"

	"github.com/gomodule/redigo/redis"
)

// server is a Redis server.
type server struct {
	host string
	pool *redis.Pool
}

// redisTimeout is how long a command may take. Its answer is waited for, also after ctx has ended:
// the bridge has to know what it has moved.
const redisTimeout = 3 * time.Second

var database = regexp.MustCompile(`^(/\d*)?$`)

// newServer returns the server at a URL. It connects later. The error does not repeat the URL,
// which may hold a password.
func newServer(address string) (*server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" || u.Opaque != "" || !database.MatchString(u.Path) {
		return nil, errors.New("write redis://user:password@host:port/database")
	}
	dial := func(ctx context.Context) (redis.Conn, error) {
		return redis.DialURLContext(ctx, address, redis.DialConnectTimeout(redisTimeout),
			redis.DialReadTimeout(redisTimeout), redis.DialWriteTimeout(redisTimeout))
	}
	// A connection that has not been used for a while may be broken.
	check := func(c redis.Conn, used time.Time) error {
		if time.Since(used) < time.Second {
			return nil
		}
		_, err := c.Do("PING")
		return err
	}
	return &server{u.Host, &redis.Pool{DialContext: dial, TestOnBorrow: check, MaxIdle: outAtOnce, IdleTimeout: time.Minute}}, nil
}

func (s *server) close() error { return s.pool.Close() }

// do carries out a command. It tries once: a command that was carried out twice could remove
// another job.
func (s *server) do(ctx context.Context, command string, args ...any) (any, error) {
	conn, err := s.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Do(command, args...)
}

// run carries out a script, once.
func (s *server) run(ctx context.Context, script *redis.Script, keysAndArgs ...any) (any, error) {
	conn, err := s.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return script.Do(conn, keysAndArgs...)
}
