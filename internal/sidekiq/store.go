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

	"github.com/gomodule/redigo/redis"
)

// store is Sidekiq's data in Redis, as the bridge with an id uses it.
type store struct {
	redis *server
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

// queueOf returns the queue of a job. For Sidekiq's workers that is the list in which it is, even
// if the job names another one.
func (s source) queueOf(named string) string {
	switch {
	case s.place == list:
		return strings.TrimPrefix(s.key, listPrefix)
	case named == "":
		return "default"
	}
	return named
}

// The bridge's own keys. A private list has the jobs that have left a source and that the broker
// has not confirmed yet.
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
	return redis.Strings(s.redis.do(ctx, "SMEMBERS", "queues"))
}

// taken returns the sources that may have jobs in their private lists.
func (s *store) taken(ctx context.Context) (sources []source, err error) {
	keys, err := redis.Strings(s.redis.do(ctx, "SMEMBERS", sourcesKey))
	for _, key := range keys {
		sources = append(sources, sourceOf(key))
	}
	return sources, err
}

// peek returns n items of a source without changing it: those that are due first, but for the first
// skip ones.
func (s *store) peek(ctx context.Context, from source, skip, n int64) (items []item, err error) {
	if from.place == list {
		jobs, err := redis.Strings(s.redis.do(ctx, "LRANGE", from.key, -skip-n, -skip-1))
		for _, job := range slices.Backward(jobs) { // Sidekiq takes jobs from the end
			items = append(items, item{job: job})
		}
		return items, err
	}
	members, err := redis.Strings(s.redis.do(ctx, "ZRANGE", from.key, skip, skip+n-1, "WITHSCORES"))
	for m := range slices.Chunk(members, 2) {
		items = append(items, item{m[0], m[1]})
	}
	return items, err
}

// errLock says that another bridge has the lock.
var errLock = errors.New("another bridge moves jobs now")

// A worker of Sidekiq may take the same job at the same time. The job leaves the source once, so
// one of the two gets it. The scripts search no more of a list than the bridge has looked at: in a
// long list, the search for a job that is gone would keep Redis busy. What can fail comes first,
// because a script is not undone.
var (
	takeFromList = redis.NewScript(4, `
if redis.call('GET', KEYS[4]) ~= ARGV[1] then return redis.error_reply('LOCK of another bridge') end
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
	takeFromSet = redis.NewScript(4, `
if redis.call('GET', KEYS[4]) ~= ARGV[1] then return redis.error_reply('LOCK of another bridge') end
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
	removeFromList = redis.NewScript(1, `
for _, job in ipairs(ARGV) do redis.call('LREM', KEYS[1], -1, job) end
return 1`)
	putIntoList = redis.NewScript(2, `
if redis.call('LREM', KEYS[2], -1, ARGV[1]) == 1 then redis.call('RPUSH', KEYS[1], ARGV[1]) end
return 1`)
	putIntoSet = redis.NewScript(2, `
if redis.call('LREM', KEYS[2], -1, ARGV[1] .. ' ' .. ARGV[2]) == 1 then redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2]) end
return 1`)
)

// take moves items from a source into its private list, and returns those that were still there.
// They are among the first depth ones.
func (s *store) take(ctx context.Context, from source, items []item, depth int64) (taken []item, err error) {
	script, args := takeFromList, make([]any, 0, 6+2*len(items))
	args = append(args, from.key, from.private(), sourcesKey, lockKey, s.id, depth)
	for _, i := range items {
		if from.place != list {
			script, args = takeFromSet, append(args, i.score)
		}
		args = append(args, i.job)
	}
	found, err := redis.Ints(s.redis.run(ctx, script, args...))
	if answer := redis.Error(""); errors.As(err, &answer) && strings.HasPrefix(string(answer), "LOCK ") {
		return nil, errLock
	}
	for _, n := range found {
		taken = append(taken, items[n-1])
	}
	return taken, err
}

// waiting returns what is in the private list of a source, in the order in which it was taken.
func (s *store) waiting(ctx context.Context, from source, n int64) (items []item, err error) {
	saved, err := redis.Strings(s.redis.do(ctx, "LRANGE", from.private(), -n, -1))
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
	args := []any{from.private()}
	for _, i := range items {
		args = append(args, i.saved())
	}
	_, err := s.redis.run(ctx, removeFromList, args...)
	return err
}

// putBack moves an item from the private list to where it came from.
func (s *store) putBack(ctx context.Context, from source, i item) error {
	script, args := putIntoList, []any{from.key, from.private()}
	if from.place != list {
		script, args = putIntoSet, append(args, i.score)
	}
	_, err := s.redis.run(ctx, script, append(args, i.job)...)
	return err
}

// pushing is one job on its way to Sidekiq's workers. It is pushed once, however often that is
// tried: a Redis that was frozen executes all attempts when it continues.
type pushing struct {
	store *store
	queue string
	job   []byte
	token string
}

func (s *store) pushing(queue string, job []byte) *pushing {
	return &pushing{s, queue, job, ours + "push:" + rand.Text()}
}

var pushOnce = redis.NewScript(3, `
if redis.call('SET', KEYS[1], '', 'NX', 'EX', 60) then
  redis.call('SADD', KEYS[2], ARGV[1])
  redis.call('LPUSH', KEYS[3], ARGV[2])
end
return 1`)

func (p *pushing) try(ctx context.Context) error {
	_, err := p.store.redis.run(ctx, pushOnce, p.token, "queues", listOf(p.queue).key, p.queue, p.job)
	return err
}

const lockTime = 15 * time.Second

var renewLock = redis.NewScript(1, `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0`)

var releaseLock = redis.NewScript(1, `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`)

// lock takes the lock, or keeps it. It reports whether this bridge has it. Two bridges that both
// took themselves for the one would publish the same jobs, but lose none.
func (s *store) lock(ctx context.Context) (bool, error) {
	got, err := redis.Int(s.redis.run(ctx, renewLock, lockKey, s.id, lockTime.Milliseconds()))
	return got == 1, err
}

func (s *store) unlock(ctx context.Context) error {
	_, err := s.redis.run(ctx, releaseLock, lockKey, s.id)
	return err
}

// check says what is wrong with the server.
func (s *store) check(ctx context.Context) error {
	info, err := redis.String(s.redis.do(ctx, "INFO", "server"))
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
