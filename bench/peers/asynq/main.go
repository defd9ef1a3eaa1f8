// Command asynq is Asynq's part of `make bench-peers`. It is in a module of its own, so that the
// others do not depend on Asynq. The environment says what the work is, and the argument what part
// the process plays: see ../work.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"golang.org/x/sys/unix"
)

// peer is the work of this process.
type peer struct {
	Row       string `json:"row"`
	Redis     string `json:"redis"`
	Log       string `json:"log"`
	Jobs      int    `json:"jobs"`
	Keys      int    `json:"keys"`
	Limit     int    `json:"limit"`
	SleepMS   int    `json:"sleep_ms"`
	Slots     int    `json:"slots"`
	Producers int    `json:"producers"`

	redis asynq.RedisConnOpt
	log   *os.File
}

// payload is what a job has.
type payload struct {
	ID  int `json:"id"`
	Key int `json:"key"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() (err error) {
	var p peer
	if err := json.Unmarshal([]byte(os.Getenv("PEER_WORK")), &p); err != nil {
		return err
	}
	if p.redis, err = asynq.ParseRedisURI(p.Redis); err != nil {
		return err
	}
	if p.log, err = os.OpenFile(p.Log, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return err
	}
	roles := map[string]func() error{"define": func() error { return nil }, "produce": p.produce, "unique": p.unique, "worker": p.worker, "scheduler": p.scheduler}
	return roles[os.Args[1]]()
}

func task(id, key int) *asynq.Task {
	body, _ := json.Marshal(payload{id, key}) // two numbers
	return asynq.NewTask("job", body)
}

// timeout is how long a job may run. A semaphore keeps the slot of a killed worker until then.
const timeout = time.Minute

func (p *peer) produce() error {
	client := asynq.NewClient(p.redis)
	defer client.Close()
	for i := range p.Jobs {
		if _, err := client.Enqueue(task(i, i%p.Keys), asynq.Queue(p.Row), asynq.Timeout(timeout)); err != nil {
			return err
		}
	}
	return nil
}

func (p *peer) unique() error {
	client := asynq.NewClient(p.redis)
	defer client.Close()
	var next, accepted atomic.Int64
	var failed atomic.Value
	var all sync.WaitGroup
	begin := time.Now()
	for range p.Producers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < p.Jobs; i = int(next.Add(1)) - 1 {
				switch _, err := client.Enqueue(task(i/2, i/2), asynq.Queue(p.Row), asynq.Unique(10*time.Minute)); {
				case err == nil:
					accepted.Add(1)
				case !errors.Is(err, asynq.ErrDuplicateTask):
					failed.Store(err)
					return
				}
			}
		})
	}
	all.Wait()
	if err, _ := failed.Load().(error); err != nil {
		return err
	}
	fmt.Printf(`{"seconds":%f,"accepted":%d}`+"\n", time.Since(begin).Seconds(), accepted.Load())
	return nil
}

func (p *peer) scheduler() error {
	scheduler := asynq.NewScheduler(p.redis, &asynq.SchedulerOpts{LogLevel: asynq.ErrorLevel})
	for i := range p.Jobs {
		if _, err := scheduler.Register("* * * * *", task(i, i), asynq.Queue(p.Row)); err != nil {
			return err
		}
	}
	if err := scheduler.Start(); err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

// errBusy is the error of a job whose key has no slot. It does not count as a failure.
var errBusy = errors.New("the key has no slot")

// retryIn is how long such a job waits. Asynq looks every five seconds by default which jobs have
// waited long enough. For these it looks as often as it can.
const retryIn = time.Second

func (p *peer) worker() error {
	server := asynq.NewServer(p.redis, asynq.Config{
		Concurrency: p.Slots, Queues: map[string]int{p.Row: 1}, LogLevel: asynq.ErrorLevel,
		DelayedTaskCheckInterval: retryIn,
		IsFailure:                func(err error) bool { return !errors.Is(err, errBusy) },
		RetryDelayFunc: func(n int, err error, t *asynq.Task) time.Duration {
			if errors.Is(err, errBusy) {
				return retryIn
			}
			return asynq.DefaultRetryDelayFunc(n, err, t)
		},
	})
	acquire := p.acquirer()
	err := server.Start(asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
		var job payload
		if err := json.Unmarshal(t.Payload(), &job); err != nil {
			return err
		}
		release, err := acquire(ctx, job.Key)
		if err != nil {
			return err
		}
		return errors.Join(p.handle(job), release())
	}))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	select {}
}

func (p *peer) handle(job payload) error {
	if err := p.note('b', job); err != nil {
		return err
	}
	time.Sleep(time.Duration(p.SleepMS) * time.Millisecond)
	return p.note('e', job)
}

// note writes that a job begins or ends, in one system call.
func (p *peer) note(what byte, job payload) error {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.log, "%c %d %d %d %d\n", what, job.ID, job.Key, os.Getpid(), t.Nano())
	return err
}
