package sidekiq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// store is Sidekiq's data in Redis.
type store struct {
	redis redis.UniversalClient
}

// source is a place in Redis from which jobs come in: the list of a queue, or a sorted set.
type source struct {
	place place
	key   string
}

func listOf(queue string) source { return source{list, "queue:" + queue} }

var sets = []source{{schedule, "schedule"}, {retries, "retry"}, {dead, "dead"}}

// private is the list of the jobs that have left the source, and whose confirm the bridge awaits.
func (s source) private() string { return ours + s.key }

// ours is the prefix of the bridge's own keys.
const ours = "millrace:bridge:"

// item is a job in a source.
type item struct {
	job   string
	score string // in a sorted set
}

// saved is the item as the private list has it.
func (i item) saved() string {
	if i.score == "" {
		return i.job
	}
	return i.score + " " + i.job
}

func (s source) restored(saved string) item {
	if s.place == list {
		return item{job: saved}
	}
	score, job, _ := strings.Cut(saved, " ")
	return item{job, score}
}

// at returns the score of an item.
func (i item) at() float64 {
	at, err := strconv.ParseFloat(i.score, 64)
	if err != nil {
		return 0
	}
	return at
}

// queues returns the names of all queues that Sidekiq knows.
func (s *store) queues(ctx context.Context) ([]string, error) {
	return s.redis.SMembers(ctx, "queues").Result()
}

// peek returns n items of a source without changing it: those that are due first, but for the first
// skip ones.
func (s *store) peek(ctx context.Context, from source, skip, n int64) (items []item, err error) {
	if from.place == list {
		jobs, err := s.redis.LRange(ctx, from.key, -skip-n, -skip-1).Result()
		for i := len(jobs) - 1; i >= 0; i-- { // Sidekiq takes jobs from the end
			items = append(items, item{job: jobs[i]})
		}
		return items, err
	}
	members, err := s.redis.ZRangeWithScores(ctx, from.key, skip, skip+n-1).Result()
	for _, m := range members {
		job, _ := m.Member.(string)
		items = append(items, item{job, strconv.FormatFloat(m.Score, 'f', -1, 64)})
	}
	return items, err
}

// A worker of Sidekiq may take the same job at the same time. It has left the source once, so one of
// the two gets it. A job that a worker has is not looked for in the whole list.
var (
	takeFromList = redis.NewScript(`
local taken = {}
for i, job in ipairs(ARGV) do
  if redis.call('LPOS', KEYS[1], job, 'RANK', -1, 'MAXLEN', 10000) and redis.call('LREM', KEYS[1], -1, job) == 1 then
    redis.call('LPUSH', KEYS[2], job)
    taken[#taken + 1] = i
  end
end
return taken`)
	takeFromSet = redis.NewScript(`
local taken = {}
for i = 1, #ARGV, 2 do
  local score = redis.call('ZSCORE', KEYS[1], ARGV[i + 1])
  if score and redis.call('ZREM', KEYS[1], ARGV[i + 1]) == 1 then
    redis.call('LPUSH', KEYS[2], ARGV[i] .. ' ' .. ARGV[i + 1])
    taken[#taken + 1] = (i + 1) / 2
  end
end
return taken`)
	putIntoList = redis.NewScript(`
if redis.call('LREM', KEYS[2], -1, ARGV[1]) == 1 then redis.call('RPUSH', KEYS[1], ARGV[1]) end`)
	putIntoSet = redis.NewScript(`
if redis.call('LREM', KEYS[2], -1, ARGV[1] .. ' ' .. ARGV[2]) == 1 then redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2]) end`)
)

// take moves items from a source into its private list, and returns those that were still there.
func (s *store) take(ctx context.Context, from source, items []item) (taken []item, err error) {
	script, args := takeFromList, make([]any, 0, 2*len(items))
	for _, i := range items {
		if from.place != list {
			script, args = takeFromSet, append(args, i.score)
		}
		args = append(args, i.job)
	}
	found, err := script.Run(ctx, s.redis, []string{from.key, from.private()}, args...).Int64Slice()
	for _, n := range found {
		taken = append(taken, items[n-1])
	}
	return taken, err
}

// waiting returns what is in the private list of a source, in the order in which it was taken.
func (s *store) waiting(ctx context.Context, from source, n int64) (items []item, err error) {
	saved, err := s.redis.LRange(ctx, from.private(), -n, -1).Result()
	for i := len(saved) - 1; i >= 0; i-- {
		items = append(items, from.restored(saved[i]))
	}
	return items, err
}

// settle removes items from the private list, after the broker has confirmed them.
func (s *store) settle(ctx context.Context, from source, items []item) error {
	_, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, i := range items {
			p.LRem(ctx, from.private(), -1, i.saved())
		}
		return nil
	})
	return err
}

// putBack moves an item from the private list to where it came from.
func (s *store) putBack(ctx context.Context, from source, i item) error {
	script, args := putIntoList, []any{i.job}
	if from.place != list {
		script, args = putIntoSet, []any{i.score, i.job}
	}
	err := script.Run(ctx, s.redis, []string{from.key, from.private()}, args...).Err()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// push gives a job to Sidekiq's workers.
func (s *store) push(ctx context.Context, queue string, job []byte) error {
	_, err := s.redis.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, "queues", queue)
		p.LPush(ctx, listOf(queue).key, job)
		return nil
	})
	return err
}

// The lock. Jobs that two bridges take at the same time would be doubled, not lost, because each is
// removed from the private list by its bytes.
const (
	lockKey  = ours + "lock"
	lockTime = 15 * time.Second
)

var renewLock = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`)

var releaseLock = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)

// lock takes the lock, or keeps it. It reports whether this bridge has it.
func (s *store) lock(ctx context.Context, id string) (bool, error) {
	got, err := renewLock.Run(ctx, s.redis, []string{lockKey}, id, lockTime.Milliseconds()).Int()
	return got == 1, err
}

func (s *store) unlock(ctx context.Context, id string) error {
	return releaseLock.Run(ctx, s.redis, []string{lockKey}, id).Err()
}

// check says what is wrong with the server.
func (s *store) check(ctx context.Context) error {
	info, err := s.redis.Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	_, version, _ := strings.Cut(info, "redis_version:")
	version, _, _ = strings.Cut(version, "\r\n")
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	if m, err := strconv.Atoi(major); err == nil {
		if n, err := strconv.Atoi(minor); m < 6 || m == 6 && err == nil && n < 2 {
			return fmt.Errorf("it has version %s, and the bridge needs 6.2 or later", version)
		}
	}
	return nil
}
