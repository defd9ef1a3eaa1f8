# frozen_string_literal: true

require 'etc'
require 'socket'

module Millrace
  # Describes a worker in its heartbeats.
  # @private
  module Heartbeat
    SHOWN_WORK = 100

    module_function

    def describe(worker, rtt_us)
      lanes = worker.pools.map { |pool| lane(pool) }
      beat = {
        'type' => 'heartbeat', 'identity' => worker.identity, 'hostname' => Socket.gethostname, 'pid' => ::Process.pid, 'tag' => worker.tag,
        'concurrency' => lanes.sum { |lane| lane['concurrency'] }, 'busy' => lanes.sum { |lane| lane['busy'] }, 'beat' => Wire.now,
        'rss_kb' => resident_kb, 'queues' => lanes.flat_map { |lane| lane['queues'] }.uniq, 'version' => worker.version,
        'started_at' => worker.started_at, 'state' => worker.state, 'labels' => worker.labels, 'lanes' => lanes, 'work' => work(worker),
        'metrics_dropped' => worker.metrics.dropped
      }
      beat['rtt_us'] = rtt_us if rtt_us
      beat['weights'] = weights(worker) unless weights(worker).empty?
      beat
    end

    def weights(worker)
      worker.pools.map(&:lane).select(&:weights).flat_map { |lane| lane.queues.zip(lane.weights) }.to_h
    end

    def lane(pool)
      { 'name' => pool.lane.name, 'queues' => pool.lane.queues, 'concurrency' => pool.lane.concurrency, 'busy' => pool.busy }
    end

    def work(worker)
      worker.settler.running.select(&:job).first(SHOWN_WORK).map do |task|
        { 'jid' => task.job.jid, 'class' => task.job.job_class, 'queue' => task.queue, 'started_at' => task.since }
      end
    end

    # Returns the resident memory of the process, or 0 if the system does not report it.
    def resident_kb
      File.read('/proc/self/statm').split[1].to_i * Etc.sysconf(Etc::SC_PAGESIZE) / 1024
    rescue SystemCallError
      `ps -o rss= -p #{::Process.pid}`.to_i
    end
  end
end
