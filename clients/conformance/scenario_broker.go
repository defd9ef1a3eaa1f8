package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/millrace-jobs/millrace/wire"
)

// blocked sets off the broker's memory alarm, in which the broker reads nothing from a connection
// that publishes. All clients run together, because the alarm is the whole broker's.
func blocked(t *trial) {
	t.serve()
	type side struct {
		client
		queue string
		w     *worker
		p     *producer
	}
	var sides []*side
	for _, c := range t.clients {
		s := &side{client: c, queue: fmt.Sprint("blocked-", len(sides))}
		sides = append(sides, s)
		t.declare(s.queue)
		s.w = t.workerOf(c, settings{Queues: []string{s.queue}, Concurrency: 3})
		t.put(s.queue, job("Sleep", 0, "during-"+s.queue, 4), limited("Wait", 4, "late-"+s.queue))
	}
	for _, s := range sides {
		s.w.did("began", "during-"+s.queue)
		s.w.did("began", "late-"+s.queue)
	}
	t.alarm()
	for _, s := range sides {
		to := map[string]any{"queue": s.queue}
		s.p = t.startProducer(s.client, withTimeout(2, with(to, "Append", "short")), withTimeout(120, with(to, "Append", "long")))
	}
	for _, s := range sides {
		s.w.did("ran", "during-"+s.queue)
		s.w.did("stopped", "late-"+s.queue)
		t.eventually(func() bool { return s.p.done() >= 1 }, "%s: a publish ends at its deadline", s.name)
	}
	t.pause(2 * time.Second)
	for _, s := range sides {
		require.Equal(t, 1, s.p.done(), "%s: a publish that the broker does not confirm fails, and one with time left waits", s.name)
	}
	t.endAlarm()
	for _, s := range sides {
		results := s.p.results(t)
		require.Contains(t, []string{"Unconfirmed", "Unreachable"}, results[0].Error, "%s: a publish that the broker does not confirm fails", s.name)
		require.NotEmpty(t, results[0].Message)
		results[1].jid(t)
		s.w.did("ran", "long")
		t.eventually(func() bool { return t.empty(s.queue) }, "%s: every job is acknowledged", s.name)
		require.Equal(t, 1, s.w.count("ran", "during-"+s.queue), "%s: a job that ended during the alarm does not come again", s.name)
		s.w.stop(t, 20*time.Second)
	}
	for _, s := range sides {
		retry := t.record(wire.Retries, "raw-Wait-late-"+s.queue)
		require.Equal(t, "Timeout", gjson.GetBytes(retry, "error_class").String(), "%s: a job that fails during the alarm gets its retry", s.name)
	}
	require.Empty(t, t.records(wire.DeadJobs))
}

// limited returns a job with a timeout.
func limited(class string, timeout float64, text string) amqp.Publishing {
	body, err := json.Marshal(map[string]any{"jid": "raw-" + class + "-" + text, "class": class, "args": []any{text, 600}, "timeout": timeout})
	if err != nil {
		panic(err)
	}
	return amqp.Publishing{Body: body}
}

// alarm sets off the memory alarm, until endAlarm or the end of the trial.
func (t *trial) alarm() {
	before, err := t.broker.Eval(t.ctx, "vm_memory_monitor:get_vm_memory_high_watermark().")
	require.NoError(t, err)
	t.watermark = before
	t.cleanup(t.endAlarm)
	_, err = t.broker.Eval(t.ctx, "vm_memory_monitor:set_vm_memory_high_watermark(1.0e-7).")
	require.NoError(t, err)
	t.eventually(func() bool {
		alarms, err := t.broker.Eval(t.ctx, "rabbit_alarm:get_alarms().")
		return err == nil && alarms != "[]"
	}, "the alarm goes off")
}

func (t *trial) endAlarm() {
	if t.watermark == "" {
		return
	}
	_, err := t.broker.Eval(context.WithoutCancel(t.ctx), fmt.Sprintf("vm_memory_monitor:set_vm_memory_high_watermark(%s).", t.watermark))
	require.NoError(t, err)
	t.watermark = ""
}

// quorum runs a worker on a quorum queue, which counts deliveries and has no x-max-priority. The
// worker must behave as on other queues.
func quorum(t *trial) {
	t.declareQuorum("default")
	t.serve()
	w := t.worker(settings{Queues: []string{"default"}, Concurrency: 3, StopTimeout: 1, MaxDeaths: 2}).ready("default")
	const n = 60
	text := func(i int) string { return fmt.Sprint("job-", i) }
	var jobs []amqp.Publishing
	for i := range n {
		jobs = append(jobs, job("Sleep", 0, text(i), 0.05))
	}
	t.put("default", append(jobs, job("FailSoon", 0, "fails once", 1))...)
	t.eventually(func() bool { return w.count("ran", "") > n/3 }, "jobs run")
	w.kill()
	w.launch()
	t.all(w, text, n)
	t.eventually(func() bool { return w.count("ran", "fails once") == 2 }, "a job is retried")
	t.eventually(func() bool { return t.empty("default") }, "every job is acknowledged")

	t.put("default", job("Die", 0, "deadly"))
	for i := range 2 {
		t.eventually(w.hasExited, "the job kills its worker, the %dth time", i+1)
		w.launch()
	}
	require.Equal(t, "poison", gjson.GetBytes(t.record(wire.DeadJobs, "raw-Die-deadly"), "reason").String())
	require.Equal(t, 2, w.count("began", "deadly"))

	t.put("default", job("Sleep", 0, "deaf", 600), job("Wait", 0, "polite", 600))
	w.did("began", "deaf")
	w.did("began", "polite")
	w.stop(t, 20*time.Second)
	t.within(soon, func() bool { return t.ready("default") == 2 }, "both are back")
	require.Len(t, t.records(wire.DeadJobs), 1)
}

// burst stops a worker whose jobs, all of a quorum queue, end at one moment. RabbitMQ passes few
// acknowledgements of a channel on to the queue until the queue has carried them out. It holds the
// others back, and forgets them when the channel closes. Their jobs then come again.
func burst(t *trial) {
	t.declareQuorum("default")
	t.serve()
	hold := t.holdable("default")
	const n = 100
	w := t.prepared(t.client, settings{Queues: []string{"default"}, Concurrency: n})
	for round := range 3 {
		var jobs []amqp.Publishing
		for i := range n {
			jobs = append(jobs, job("Sleep", 0, fmt.Sprintf("round%d-%d", round, i), 4))
		}
		t.put("default", jobs...)
		w.launch()
		t.eventually(func() bool { return w.count("began", "") == (round+1)*n }, "all jobs run")
		w.signal(syscall.SIGTERM)
		t.eventually(func() bool { return w.count("quiet", "-") == round+1 }, "the worker stops")
		t.pause(500 * time.Millisecond) // it cancels its consumer, and the queue must not hold that up
		// The jobs become due while the process is frozen, so all of them end when it continues.
		w.signal(syscall.SIGSTOP)
		t.pause(4 * time.Second)
		hold()
		w.signal(syscall.SIGCONT)
		w.ends(t, 20*time.Second)
		require.Equal(t, (round+1)*n, w.count("ran", ""), "each job ends")
		t.pause(time.Second)
		require.Zero(t, t.ready("default"), "no job that ran comes back to its queue, in round %d", round)
	}
}

// holdable returns a function that holds a quorum queue for half a second, as a busy disk does.
func (t *trial) holdable(queue string) (hold func()) {
	dir, err := os.MkdirTemp(t.brokerDir(), "hold-")
	require.NoError(t, err)
	file := filepath.Join(dir, "hold") // the broker removes it when it holds the queue
	_, err = t.broker.Eval(t.ctx, fmt.Sprintf(`
		{ok, Queue} = rabbit_amqqueue:lookup(rabbit_misc:r(<<%q>>, queue, <<%q>>)),
		{Name, _} = amqqueue:get_pid(Queue),
		Leader = whereis(Name),
		true = is_pid(Leader),
		Hold = fun() -> erlang:suspend_process(Leader), ok = file:delete(%[3]q), timer:sleep(500), erlang:resume_process(Leader) end,
		Loop = fun Loop() -> timer:sleep(5), is_process_alive(Leader) andalso begin filelib:is_file(%[3]q) andalso Hold(), Loop() end end,
		spawn(Loop).`, t.room.vhost, wire.QueuePrefix+queue, file))
	require.NoError(t, err)
	return func() {
		require.NoError(t, os.WriteFile(file, nil, 0o666))
		t.eventually(func() bool {
			_, err := os.Stat(file)
			return errors.Is(err, os.ErrNotExist)
		}, "the broker holds the queue")
	}
}
