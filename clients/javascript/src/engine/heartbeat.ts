import type { Engine } from './engine.js';
import { seconds } from '../format.js';

const SHOWN_WORK = 100;

/** Returns a worker's heartbeat. */
export function heartbeat(engine: Engine, rtt: number | undefined): object {
  const { config, lanes } = engine;
  const weights = Object.assign({}, ...lanes.map(({ queues, weights: each }) => each && Object.fromEntries(queues.map((q, i) => [q, each[i]]))));
  const running = [...engine.running.values()].flatMap(({ job, queue, since, verdictGiven }) => (job && since && !verdictGiven ? [{ job, queue, since }] : []));
  return {
    type: 'heartbeat', identity: engine.identity, hostname: engine.hostname, pid: process.pid, tag: config.tag,
    concurrency: lanes.reduce((sum, l) => sum + l.concurrency, 0), busy: lanes.reduce((sum, l) => sum + l.busy, 0), beat: seconds(),
    rss_kb: Math.round(process.memoryUsage.rss() / 1024), queues: engine.queues, version: config.version, started_at: engine.startedAt,
    state: engine.state, labels: config.labels ?? {}, ...(rtt && { rtt_us: rtt }),
    ...(Object.keys(weights).length && { weights }),
    lanes: lanes.map(({ name, queues, concurrency, busy }) => ({ name, queues, concurrency, busy })),
    work: running.slice(0, SHOWN_WORK).map(({ job, queue, since }) => ({ jid: job.jid, class: job.class, queue, started_at: seconds(since) })),
    metrics_dropped: engine.metrics.dropped,
  };
}
