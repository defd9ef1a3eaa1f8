package io.github.millracejobs;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Describes a worker in its heartbeats. */
final class Heartbeat {
    private static final int SHOWN_WORK = 100;

    private Heartbeat() {}

    static Map<String, Object> of(Worker worker, long rttMicros) {
        Set<String> queues = new LinkedHashSet<>();
        Map<String, Integer> weights = new LinkedHashMap<>();
        List<Object> lanes = new ArrayList<>();
        int concurrency = 0;
        int busy = 0;
        for (Pool pool : worker.pools) {
            Lane lane = pool.lane;
            queues.addAll(lane.queues);
            for (int i = 0; lane.weights != null && i < lane.weights.size(); i++) {
                weights.put(lane.queues.get(i), lane.weights.get(i));
            }
            int now = pool.busy();
            concurrency += lane.concurrency;
            busy += now;
            lanes.add(Map.of("name", lane.name, "queues", lane.queues, "concurrency", lane.concurrency, "busy", now));
        }
        Map<String, Object> beat = new LinkedHashMap<>();
        beat.put("type", "heartbeat");
        beat.put("identity", worker.identity);
        beat.put("hostname", Host.NAME);
        beat.put("pid", Host.PID);
        beat.put("tag", worker.tag);
        beat.put("concurrency", concurrency);
        beat.put("busy", busy);
        beat.put("beat", Json.time(Wire.now()));
        beat.put("rss_kb", Host.residentKb());
        beat.put("queues", queues);
        beat.put("version", worker.version);
        beat.put("started_at", Json.time(worker.startedAt));
        beat.put("state", worker.state());
        beat.put("labels", worker.labels);
        if (rttMicros > 0) {
            beat.put("rtt_us", rttMicros);
        }
        if (!weights.isEmpty()) {
            beat.put("weights", weights);
        }
        beat.put("lanes", lanes);
        beat.put("work", work(worker));
        beat.put("metrics_dropped", worker.metrics.dropped());
        return beat;
    }

    private static List<Object> work(Worker worker) {
        List<Object> work = new ArrayList<>();
        for (Task task : worker.running.all()) {
            Job job = task.job();
            if (job != null && work.size() < SHOWN_WORK) {
                work.add(Map.of("jid", Wire.valid(job.jid()), "class", job.className(), "queue", task.queue(), "started_at", Json.time(task.since())));
            }
        }
        return work;
    }
}
