package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/millrace-jobs/millrace/scheduler"
)

var (
	descLeader      = desc("leader", "1 if this sidecar leads.")
	descLastDelay   = desc("scheduled_last_fire_delay_seconds", "How late the newest delivery of this leader was.")
	descFireDelay   = desc("scheduled_fire_delay_seconds", "How late jobs were delivered by this leader.")
	descConfirm     = desc("publish_confirm_seconds", "How long the broker took to confirm what this leader published.")
	descBlocked     = desc("broker_blocked", "1 if the broker takes no publishes from this leader.")
	descReconnects  = desc("broker_reconnects_total", "Connections to lead with that were lost.")
	descFailed      = desc("publish_failed_total", "Deliveries that did not reach their queue.", "reason")
	descUnconfirmed = desc("unconfirmed_publishes", "Deliveries that the broker has not confirmed yet.")
	descFires       = desc("fires_total", "Jobs that this sidecar delivered.")
	descDeadLetters = desc("dead_lettered_total", "Jobs that the broker dead-lettered, that this sidecar took over.")
	descCommands    = desc("commands_total", "Commands that this sidecar answered as leader.")
	descTicks       = desc("periodic_ticks_total", "Ticks of periodic jobs that this sidecar decided as leader, by outcome: made, missed, skipped for another reason, or run by a user.", "outcome")
	descTickLate    = desc("periodic_tick_late_seconds", "How late this leader enqueued the jobs of ticks.")
	descFreed       = desc("slots_freed_total", "Slots that this sidecar freed as leader although no worker had reported the end, by reason: gone (the queue had fewer messages), asked (by a user), or no_queue.", "reason")
	descClaims      = desc("claims_total", "Claims of slots that this sidecar answered as leader, by answer: run or drop.", "answer")
	descDecided     = desc("unique_decided_total", "Decisions about unique jobs by this sidecar as leader: admitted, replaced (admitted in place of a job that waited), duplicate, or repeated publishes.", "outcome")
	descEpochs      = desc("epochs_total", "How often this sidecar became leader.")
	descHeld        = desc("held_queues", "Queues that take no jobs now.")
	descGap         = desc("journal_gap", "1 if the journal may have lost records and due entries are held.")
	descDegraded    = desc("degraded", "1 for each thing that fails and that jobs are delivered without, such as a metrics stream.", "subject")
	descInDoubt     = desc("fires_in_doubt", "Deliveries of earlier leaders that may have arrived, and that this leader has not settled yet.")
	descSilent      = desc("silent_queues", "Queues that do not answer what this leader delivers to them.")
	descLease       = desc("leader_lease_age_seconds", "How old the newest ping is that came back to this leader through the lock; 0 if it needs none.")
	descReplicas    = desc("missing_replicas", "Replicas that a stream or quorum queue should have, and that are not online.", "queue")
	descOrphaned    = desc("leader_lock_orphaned", "1 if a client holds the leader's lock, so that no sidecar leads.")
)

// leader sends what this sidecar does as leader.
type leader struct{ status func() scheduler.Status }

func (p leader) collect(out sink) {
	s := p.status()
	out.gauge(descLeader, truth(s.Leader))
	out.gauge(descLastDelay, s.LastLate.Seconds())
	out.gauge(descBlocked, truth(s.Blocked != ""))
	out.gauge(descUnconfirmed, float64(s.Unconfirmed))
	out.gauge(descHeld, float64(len(s.Held)))
	out.gauge(descGap, truth(s.Gap != ""))
	out.gauge(descInDoubt, float64(s.InDoubt))
	out.gauge(descSilent, float64(s.Silent))
	out.gauge(descLease, s.LeaseAge.Seconds())
	for queue, n := range s.MissingReplicas {
		out.gauge(descReplicas, float64(n), queue)
	}
	out.gauge(descOrphaned, truth(s.Orphaned))
	for _, d := range s.Degraded {
		out.gauge(descDegraded, 1, d.Subject)
	}
	out.delays(descFireDelay, &s.Counters.FireDelays)
	out.delays(descConfirm, &s.Counters.Confirms)
	out.counter(descReconnects, s.Counters.Lost)
	out.counter(descFailed, s.Counters.Returned, "returned")
	out.counter(descFailed, s.Counters.Refused, "refused")
	out.counter(descFires, s.Counters.Fired)
	out.counter(descDeadLetters, s.Counters.DeadLettered)
	out.counter(descCommands, s.Counters.Commands)
	out.counter(descEpochs, s.Counters.Epochs)
	ticks := &s.Counters.Ticks
	for outcome, n := range map[string]int64{"made": ticks.Made, "missed": ticks.Missed, "skipped": ticks.Skipped, "run": ticks.Runs} {
		out.counter(descTicks, n, outcome)
	}
	out.delays(descTickLate, &ticks.Late)
	freed := &s.Counters.SlotsFreed
	for reason, n := range map[string]int64{"gone": freed.Gone, "asked": freed.Asked, "no_queue": freed.NoQueue} {
		out.counter(descFreed, n, reason)
	}
	out.counter(descClaims, s.Counters.Claims.Run, "run")
	out.counter(descClaims, s.Counters.Claims.Dropped, "drop")
	d := &s.Counters.Decided
	for outcome, n := range map[string]int64{"admitted": d.Admitted - d.Replaced, "replaced": d.Replaced, "duplicate": d.Duplicate, "repeated": d.Repeated} {
		out.counter(descDecided, n, outcome)
	}
}

func (s sink) delays(d *prometheus.Desc, v *scheduler.Delays) {
	s.histogram(d, scheduler.DelayBounds[:], v.Counts[:], v.Count(), v.Sum)
}

var (
	descUp        = desc("up", "This sidecar runs; always 1.")
	descConnected = desc("broker_connected", "1 if the broker is connected.")
)

// broker sends whether the broker is connected.
type broker struct {
	status func() (connected bool, product, version string)
}

func (p broker) collect(out sink) {
	connected, _, _ := p.status()
	out.gauge(descUp, 1)
	out.gauge(descConnected, truth(connected))
}
