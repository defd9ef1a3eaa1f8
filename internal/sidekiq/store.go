package sidekiq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// store is Sidekiq's data in Redis, as the bridge with an id uses it.
type store struct {
	redis redis.UniversalClient
	id    string
}

// place is where a job is in Redis.
type place int

const (
	list place = iota // of a queue
	schedule
	retries
	dead
)

func (p place) String() string { return [...]string{"queue", "schedule", "retry", "dead"}[p] }

// source is a place in Redis from which jobs come in: the list of a queue, or a sorted set.
type source struct {
	place place
	key   string
}

const listPrefix = "queue:"

func listOf(queue string) source { return source{list, listPrefix + queue} }

var sets = []source{{schedule, "schedule"}, {retries, "retry"}, {dead, "dead"}}

// sourceOf returns the source with a key.
func sourceOf(key string) source {
	if i := slices.IndexFunc(sets, func(s source) bool { return s.key == key }); i >= 0 {
		return sets[i]
	}
	return source{list, key}
}

// queueOf returns the queue of a job. For Sidekiq's workers that is the list in which it is, even if
// the job names another one.
func (s source) queueOf(named string) string {
	switch {
	case s.place == list:
		return strings.TrimPrefix(s.key, listPrefix)
	case named == "":
		return "default"
	}
	return named
}

// The bridge's own keys. A private list has the jobs that have left a source and that the broker has
// not confirmed yet.
const (
	ours       = "millrace:bridge:"
	lockKey    = ours + "lock"
	sourcesKey = ours + "sources" // a set: the keys of the sources that have, or had, a private list
)

func (s source) private() string { return ours + s.key }

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

// taken returns the sources that may have jobs in their private lists.
func (s *store) taken(ctx context.Context) (sources []source, err error) {
	keys, err := s.redis.SMembers(ctx, sourcesKey).Result()
	for _, key := range keys {
		sources = append(sources, sourceOf(key))
	}
	return sources, err
}

// peek returns n items of a source without changing it: those that are due first, but for the first
// skip ones.
func (s *store) peek(ctx context.Context, from source, skip, n int64) (items []item, err error) {
	if from.place == list {
		jobs, err := s.redis.LRange(ctx, from.key, -skip-n, -skip-1).Result()
		for _, job := range slices.Backward(jobs) { // Sidekiq takes jobs from the end
			items = append(items, item{job: job})
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

// errLock says that another bridge has the lock.
var errLock = errors.New("another bridge moves jobs now")

// A worker of Sidekiq may take the same job at the same time. The job leaves the source once, so one
// of the two gets it. The scripts search no more of a list than the bridge has looked at: in a long
// list, the search for a job that is gone would keep Redis busy. What can fail comes first, because
// a script is not undone.
var (
	takeFromList = redis.NewScript(`
if redis.call('GET', KEYS[4]) ~= ARGV[1] then return redis.error_reply('LOCK') end
redis.call('SADD', KEYS[3], KEYS[1])
local taken = {}
for i = 3, #ARGV do
  if redis.call('LPOS', KEYS[1], ARGV[i], 'RANK', -1, 'MAXLEN', ARGV[2]) then
    redis.call('LPUSH', KEYS[2], ARGV[i])
    redis.call('LREM', KEYS[1], -1, ARGV[i])
    taken[#taken + 1] = i - 2
  end
end
return taken`)
	takeFromSet = redis.NewScript(`
if redis.call('GET', KEYS[4]) ~= ARGV[1] then return redis.error_reply('LOCK') end
redis.call('SADD', KEYS[3], KEYS[1])
local taken = {}
for i = 3, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i + 1]) then
    redis.call('LPUSH', KEYS[2], ARGV[i] .. ' ' .. ARGV[i + 1])
    redis.call('ZREM', KEYS[1], ARGV[i + 1])
    taken[#taken + 1] = (i - 1) / 2
  end
end
return taken`)
	putIntoList = redis.NewScript(`
if redis.call('LREM', KEYS[2], -1, ARGV[1]) == 1 then redis.call('RPUSH', KEYS[1], ARGV[1]) end
return 1`)
	putIntoSet = redis.NewScript(`
if redis.call('LREM', KEYS[2], -1, ARGV[1] .. ' ' .. ARGV[2]) == 1 then redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2]) end
return 1`)
)

// take moves items from a source into its private list, and returns those that were still there. They
// are among the first depth ones.
func (s *store) take(ctx context.Context, from source, items []item, depth int64) (taken []item, err error) {
	script, args := takeFromList, make([]any, 0, 2+2*len(items))
	args = append(args, s.id, depth)
	for _, i := range items {
		if from.place != list {
			script, args = takeFromSet, append(args, i.score)
		}
		args = append(args, i.job)
	}
	found, err := script.Run(ctx, s.redis, []string{from.key, from.private(), sourcesKey, lockKey}, args...).Int64Slice()
	if redis.HasErrorPrefix(err, "LOCK") {
		return nil, errLock
	}
	for _, n := range found {
		taken = append(taken, items[n-1])
	}
	return taken, err
}

// waiting returns what is in the private list of a source, in the order in which it was taken.
func (s *store) waiting(ctx context.Context, from source, n int64) (items []item, err error) {
	saved, err := s.redis.LRange(ctx, from.private(), -n, -1).Result()
	for _, i := range slices.Backward(saved) {
		items = append(items, from.restored(i))
	}
	return items, err
}

// settle removes items from the private list, after the broker has confirmed them.
func (s *store) settle(ctx context.Context, from source, items []item) error {
	if len(items) == 0 {
		return nil
	}
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
	return script.Run(ctx, s.redis, []string{from.key, from.private()}, args...).Err()
}

// pushing is one job on its way to Sidekiq's workers. It is pushed once, however often that is tried:
// a Redis that was frozen executes all attempts when it continues.
type pushing struct {
	store *store
	queue string
	job   []byte
	token string
}

func (s *store) pushing(queue string, job []byte) *pushing {
	return &pushing{s, queue, job, ours + "push:" + rand.Text()}
}

var pushOnce = redis.NewScript(`
if redis.call('SET', KEYS[1], '', 'NX', 'EX', 60) then
  redis.call('SADD', KEYS[2], ARGV[1])
  redis.call('LPUSH', KEYS[3], ARGV[2])
end
return 1`)

func (p *pushing) try(ctx context.Context) error {
	return pushOnce.Run(ctx, p.store.redis, []string{p.token, "queues", listOf(p.queue).key}, p.queue, p.job).Err()
}

const lockTime = 15 * time.Second

var renewLock = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`)

var releaseLock = redis.NewScript(`
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)

// lock takes the lock, or keeps it. It reports whether this bridge has it. Two bridges that both took
// themselves for the one would publish the same jobs, but lose none.
func (s *store) lock(ctx context.Context) (bool, error) {
	got, err := renewLock.Run(ctx, s.redis, []string{lockKey}, s.id, lockTime.Milliseconds()).Int()
	return got == 1, err
}

func (s *store) unlock(ctx context.Context) error {
	return releaseLock.Run(ctx, s.redis, []string{lockKey}, s.id).Err()
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
