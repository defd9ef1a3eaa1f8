# frozen_string_literal: true

module Millrace
  # Writes to a worker's log what it did with jobs: an event, key-values, and the stack of an error.
  # It never writes arguments, which may be secret. An error of the logger does not affect a job.
  # @private
  module Report
    # How many lines of a stack are written.
    STACK = 100
    # How many characters of a class, a jid or a queue are written.
    LONGEST = 200

    module_function

    # Logs an attempt that did not end well. `lost` means that its delivery is lost with its
    # connection, and the broker delivers the job again.
    def outcome(log, job, outcome, lost: false)
      fate = lost ? { next: 'redelivery' } : fate(outcome)
      if outcome.answer == :requeue
        info(log, 'job handed back', about(job))
      elsif outcome.failure
        warn(log, 'job failed', { **about(job), **fate, **error(outcome.failure) }, outcome.failure)
      elsif outcome.status == 'expired'
        expired(log, job, fate)
      elsif outcome.died
        warn(log, 'job given up before it began', { **about(job), **fate, **error(outcome.died) })
      elsif outcome.status == 'discarded'
        info(log, 'job discarded', { **about(job), reason: outcome.reason })
      end
    end

    def expired(log, job, fate)
      line = [log, 'job expired', { **about(job), **fate }]
      fate[:next] == 'dead' ? warn(*line) : info(*line)
    end

    # Logs a handler that still runs after its timeout.
    def late(log, job, seconds)
      warn(log, 'job is over its timeout and still running', { **about(job), timeout: "#{seconds}s" })
    end

    # Logs a job that is handed back although its handler still runs.
    def handed_back(log, job)
      warn(log, 'job handed back, its handler did not end within the stop timeout', about(job))
    end

    # Logs that the broker refuses the record of a job, which is published again.
    def record_refused(log, job, refused)
      write(log, :error, 'the broker does not take what became of a job, it is tried again', { **about(job), error: refused.message })
    end

    # Logs that the broker refuses the record that a limited job has ended, which is published again.
    def end_refused(log, slot, refused)
      write(log, :error, 'the broker does not take that a job has ended, it is tried again', { slot: slot, error: refused.message })
    end

    # Logs that the begin of a redelivered job could not be written.
    def begin_unwritten(log, job, error)
      warn(log, 'a job begins that was delivered before, and that could not be written down', { **about(job), error: error.message })
    end

    # Logs a retry_in that failed or returned an invalid value.
    def retry_in_failed(log, job, error)
      warn(log, 'retry_in failed, the default backoff is used', { **about(job), **error(error) }, error)
    end

    # Logs a hook that failed.
    def hook_failed(log, event, error)
      line = { hook: event, **error(error) }
      write(log, :error, 'hook failed', line, error)
    end

    def started(log, worker)
      lanes = worker.pools.map(&:lane)
      info(log, 'worker started', { version: VERSION, identity: worker.identity, queues: lanes.flat_map(&:queues).uniq.join(','),
                                    concurrency: lanes.sum(&:concurrency) })
    end

    def stopped(log, worker)
      info(log, 'worker stopped', { identity: worker.identity })
    end

    def about(job)
      { class: job.job_class[0, LONGEST], jid: job.jid[0, LONGEST], queue: job.queue, attempt: job.attempt }
    end

    def error(error)
      { error_class: Record.error_class(error), error: Record.message(error) }
    end

    # Returns what happens next to a job.
    def fate(outcome)
      return { next: 'retry', retry_at: Time.at(outcome.retry_at).utc.strftime('%FT%TZ') } if outcome.retry_at

      { next: outcome.stream == Wire::DEAD || outcome.answer == :reject ? 'dead' : 'discarded' }
    end

    def warn(log, event, pairs, error = nil)
      write(log, :warn, event, pairs, error)
    end

    def info(log, event, pairs)
      write(log, :info, event, pairs)
    end

    def write(log, level, event, pairs, error = nil)
      line = "#{event} #{pairs.map { |name, value| "#{name}=#{word(value.to_s)}" }.join(' ')}"
      stack = error ? Record.backtrace(error).first(STACK) : []
      log.public_send(level, [line, *stack].join("\n    "))
      nil
    rescue StandardError
      nil
    end

    # Returns a value for the log, in quotes unless it is one word.
    def word(text)
      text.match?(/\A[[:graph:]&&[^"=]]+\z/) ? text : text.inspect
    end
  end
end
