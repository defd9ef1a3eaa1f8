package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/internal/brokertest"
	"github.com/millrace-jobs/millrace/wire"
)

func TestUniqueJobs(t *testing.T) {
	w := begin(t, brokertest.Own(t), seed)
	uniqueJobs(w, 1000, 100, 6, 8)
	t.Log(w.note)
}

// uniqueJobs kills leaders, workers and the broker while producers race: each publishes unique jobs
// with few keys, and awaits the answers. From outside, with the lines that the workers write, no
// two jobs of a key may be unfinished at once, and no job may be lost that is not another's
// duplicate.
func uniqueJobs(w *world, jobs, keys, workers, kills int) {
	w.two()
	w.ask(http.MethodPut, "/api/job-queues/limited", "")
	crew := newCrew(w, workers)
	race := &race{w: w, answers: map[string]wire.Reply{}}
	const producers = 4
	var ended sync.WaitGroup
	for n := range producers {
		ended.Go(func() { race.produce(n, jobs/producers, keys) })
	}
	w.killUntil(kills, 500*time.Millisecond, 1500*time.Millisecond, shares{3, 5}, func() { crew.kill(w.random.IntN(workers)) })
	ended.Wait()
	w.jobs = len(race.published)
	brokertest.EventuallyWithin(w.t, 3*time.Minute, func() bool { return string(w.ask(http.MethodGet, "/api/unique-keys", "")) == "[]\n" }, "no key is taken when all jobs have ended")
	w.pause(quiet)
	all := w.epochs()
	w.unconfirmed, w.settling = moments(all, w.killed)
	w.took, w.broken = time.Since(w.began), nil
	log := crew.unfinished()
	lost, wrong, duplicates := race.reckon(log)
	w.note = fmt.Sprintf("%d of %d jobs were duplicates, %d publishers got no answer, %d workers killed", duplicates, w.jobs, w.jobs-len(race.answers), crew.killed)
	both := log.overlaps()
	w.must(len(both) == 0, "%d pairs of jobs of one key were unfinished at once: %v", len(both), first(both))
	w.must(len(lost) == 0, "%d jobs are lost: %v", len(lost), first(lost))
	w.must(len(wrong) == 0, "%d answers were wrong: %v", len(wrong), first(wrong))
	w.must(duplicates > 0, "no job was a duplicate")
}

// race is what the producers know.
type race struct {
	w         *world
	mu        sync.Mutex
	published []string // jids that the broker has confirmed
	answers   map[string]wire.Reply
}

// produce publishes jobs, one after the other, and repeats what was not confirmed.
func (r *race) produce(producer, jobs, keys int) {
	var c *raceConn
	for n := range jobs {
		jid := fmt.Sprintf("unique-%d-%05d", producer, n)
		key := fmt.Sprintf("key-%d", (n*7+producer)%keys)
		body := fmt.Appendf(nil, `{"jid":%q,"class":"Unique","args":[],"queue":"limited","gate":{"key":%q,"unique":{"key":%q}}}`, jid, key, key)
		for {
			var err error
			if c == nil {
				c, err = r.connect()
			}
			if err == nil {
				err = c.publish(jid, body)
			}
			if err == nil {
				break
			}
			if c != nil {
				_ = c.conn.Close()
			}
			c = nil
			time.Sleep(200 * time.Millisecond)
		}
		r.mu.Lock()
		r.published = append(r.published, jid)
		r.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
	}
	if c != nil {
		time.Sleep(2 * time.Second) // for the last answers
		_ = c.conn.Close()
	}
}

// raceConn is a connection of a producer.
type raceConn struct {
	conn *amqp.Connection
	ch   *amqp.Channel
}

func (r *race) connect() (*raceConn, error) {
	conn, err := amqp.DialConfig(r.w.v.AMQPURL(), amqp.Config{Heartbeat: 5 * time.Second, Dial: amqp.DefaultDial(5 * time.Second)})
	if err != nil {
		return nil, err
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	answers, err := ch.Consume("amq.rabbitmq.reply-to", "", true, false, false, false, nil)
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	go func() {
		for d := range answers {
			var reply wire.Reply
			if json.Unmarshal(d.Body, &reply) == nil {
				r.mu.Lock()
				r.answers[d.CorrelationId] = reply
				r.mu.Unlock()
			}
		}
	}()
	return &raceConn{conn, ch}, nil
}

func (c *raceConn) publish(jid string, body []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	confirm, err := c.ch.PublishWithDeferredConfirmWithContext(ctx, "", wire.Gated, true, false,
		amqp.Publishing{DeliveryMode: amqp.Persistent, ReplyTo: "amq.rabbitmq.reply-to", CorrelationId: jid, Body: body})
	if err != nil {
		return err
	}
	ack, err := confirm.WaitContext(ctx)
	if err == nil && !ack {
		err = errors.New("nacked")
	}
	return err
}

// span is from when a job began until it had ended for good.
type span struct {
	jid        string
	begin, end float64 // 0: not yet
}

// spans are those of the jobs of each key.
type spans map[string]map[string]*span

// unfinished reads the lines of the workers.
func (c *crew) unfinished() spans {
	all := spans{}
	file, err := os.Open(c.path)
	require.NoError(c.w.t, err)
	defer file.Close()
	for s := bufio.NewScanner(file); s.Scan(); {
		fields := strings.Split(s.Text(), "\t")
		if len(fields) != 5 || fields[2] == "-" {
			continue
		}
		jid, _, _ := strings.Cut(fields[2], "/")
		at, _ := strconv.ParseFloat(fields[4], 64)
		if all[fields[3]] == nil {
			all[fields[3]] = map[string]*span{}
		}
		one := all[fields[3]][jid]
		if one == nil {
			one = &span{jid: jid}
			all[fields[3]][jid] = one
		}
		switch {
		case fields[0] == "begins" && (one.begin == 0 || at < one.begin):
			one.begin = at
		case fields[0] == "ends":
			one.end = max(one.end, at)
		}
	}
	return all
}

// overlaps returns the pairs of jobs of one key that were unfinished at once.
func (s spans) overlaps() (pairs []string) {
	for key, jobs := range s {
		var all []*span
		for _, one := range jobs {
			if one.begin > 0 {
				all = append(all, one)
			}
		}
		slices.SortFunc(all, func(a, b *span) int { return int(1e6 * (a.begin - b.begin)) })
		for i := 1; i < len(all); i++ {
			if all[i].begin < all[i-1].end {
				pairs = append(pairs, fmt.Sprintf("%s: %s until %f, %s from %f", key, all[i-1].jid, all[i-1].end, all[i].jid, all[i].begin))
			}
		}
	}
	return pairs
}

func (s spans) ran(jid string) bool {
	for _, jobs := range s {
		if one := jobs[jid]; one != nil && one.end > 0 {
			return true
		}
	}
	return false
}

// reckon returns the jobs that are lost, and those about which a publisher got a wrong answer.
func (r *race) reckon(log spans) (lost, wrong []string, duplicates int) {
	for _, jid := range r.published {
		ran := log.ran(jid)
		timeline := gjson.ParseBytes(r.w.ask(http.MethodGet, "/api/jobs/"+jid, ""))
		duplicate := timeline.Get(`events.#(what=="duplicate").other`).String()
		if duplicate != "" {
			duplicates++
		}
		if !ran && duplicate == "" {
			lost = append(lost, jid)
		}
		reply, answered := r.answers[jid]
		switch {
		case !answered:
		case reply.Status == wire.StatusCreated && !ran, reply.Status == wire.StatusOK && duplicate != reply.DuplicateOf && !ran:
			wrong = append(wrong, fmt.Sprintf("%s: %+v", jid, reply))
		}
	}
	return lost, wrong, duplicates
}
