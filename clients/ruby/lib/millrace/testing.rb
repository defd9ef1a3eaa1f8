# frozen_string_literal: true

require 'millrace'

module Millrace
  # Producers without a broker, for tests. {Inline} runs a job as soon as it is enqueued; {Fake} collects jobs until they are drained. Both
  # check jobs as a {Client} does, hand handlers args that went through JSON, and decide what becomes of a job as a worker does. They run
  # the classes that include {Handler}; give them the worker whose {Worker#handle}, middleware and hooks `:failure` and `:death` count.
  #
  # @example
  #   client = Millrace.client = Millrace::Testing::Fake.new
  #   sign_up('ann@example.com')
  #   assert_equal ['ann@example.com'], client.jobs.first.args
  #   client.drain
  module Testing
    # Several jobs of one {Fake#drain} failed.
    class Failures < Error
      # @return [Array<Exception>] the error of each job that failed, in the order in which they ran
      attr_reader :errors

      # @private
      def initialize(errors)
        @errors = errors
        super(["#{errors.size} jobs failed:", *errors.map { |error| "#{error.class}: #{error.message}" }].join("\n  "))
        set_backtrace(errors.first.backtrace || [])
      end
    end

    # A job that was enqueued, is to be retried, or is dead.
    class Enqueued
      # @return [Job]
      attr_reader :job
      # @return [Float, nil] when it is due, in seconds since the epoch; nil: at once
      attr_reader :at
      # @return [Exception, nil] why its last attempt failed, if it is a retry or dead
      attr_reader :error

      # @private
      def initialize(job, at, error = nil)
        @job = job
        @at = at
        @error = error
      end

      # @return [String]
      def job_class
        job.job_class
      end

      # @return [Array] as its handler will get them
      def args
        job.args
      end

      # The job for its next attempt.
      # @private
      def retried(at, error)
        member = Scan.members(job.raw).find { |found| found.spelled == 'retry_count' }
        body = job.raw.dup
        body[member.from...member.to] = (job.retry_count + 1).to_s
        Enqueued.new(copy(body), at, error)
      end

      # The job as it came: none of its signals is set.
      # @private
      def handed_back
        Enqueued.new(copy(job.raw), at)
      end

      private

      def copy(body)
        Job.new(body, job.queue, headers: job.headers, message_id: job.jid)
      end
    end

    # A publish that needs no answer.
    # @private
    Answered = Struct.new(:jid) do
      alias_method :wait, :jid
    end

    # What both have in common.
    # @private
    class Offline < Client
      # What may end a job early.
      SIGNALS = %i[cancelled timeout stopping].freeze

      def initialize(worker = nil)
        super('amqp://nowhere.invalid')
        @worker = worker || Worker.new('amqp://nowhere.invalid')
      end

      private

      def publish(new_job, _seconds)
        jid, message = new_job.prepare(Wire.now)
        body, at = new_job.at ? unwrap(message.body) : [message.body, nil]
        queue = Parse.json(body.b)['queue']
        enqueued(Enqueued.new(Job.new(body, queue, headers: message.headers, message_id: jid), at))
        Answered.new(jid)
      end

      # The job's bytes in a scheduled job, and when it is due.
      def unwrap(body)
        members = Scan.members(body).to_h { |member| [member.spelled, body.byteslice(member.from...member.to)] }
        [members['job'], JSON.parse(members['scheduled_at'])]
      end

      # Runs one attempt, with the hooks that a worker calls, and returns the outcome.
      def work(job, signal = nil)
        attempt = Attempt.new(@worker, job, signal)
        outcome = attempt.run
        raise attempt.error if attempt.error.is_a?(SignalException) # Ctrl-C is meant for the tests

        @worker.hooks.call_here(:failure, job, outcome.failure) if outcome.failure
        @worker.hooks.call_here(:death, job, outcome.died) if outcome.died
        outcome
      end

      # Reports whether a job failed: one that its handler or its backoff discards has ended well.
      def failed?(outcome)
        !outcome.failure.nil? && (outcome.status != 'discarded' || !outcome.died.nil?)
      end
    end

    # A client that runs a job's handler immediately. The caller gets what the handler raises, but for {Discard}, with which a job ends
    # well. Where it raises after the job's timeout, the caller gets {Timeout}.
    class Inline < Offline
      private

      def enqueued(enqueued)
        outcome = work(enqueued.job)
        raise outcome.failure if failed?(outcome)
      end
    end

    # A client that collects.
    class Fake < Offline
      # @param worker [Worker, nil] whose handlers run what is drained, beside what includes {Handler}
      def initialize(worker = nil)
        super
        @jobs = []
        @retries = []
        @dead = []
      end

      # What was enqueued and not drained.
      # @param job_class [String, Class, nil] lists the jobs of this class only
      # @return [Array<Enqueued>]
      def jobs(job_class = nil)
        of(@jobs, job_class)
      end

      # What has failed and is to be tried again: their jobs have the next {Job#attempt}.
      # @param (see #jobs)
      # @return [Array<Enqueued>]
      def retries(job_class = nil)
        of(@retries, job_class)
      end

      # What was given up.
      # @param (see #jobs)
      # @return [Array<Enqueued>]
      def dead(job_class = nil)
        of(@dead, job_class)
      end

      # Runs each job once, those that these enqueue too, and scheduled ones without waiting. When all have run it raises what they failed
      # with: the error itself, or {Failures} if there are several.
      #
      # @param retries [Boolean] whether failed jobs run again, as often as their `retry` allows, those of earlier calls too. Then only jobs
      #   that were given up count as failed
      # @param signal [Symbol, nil] the signal that is set as each job begins: `:cancelled`; `:timeout`, for jobs that have one or whose
      #   handler has one; or `:stopping`: a job that is handed back is among the {#jobs} again
      # @return [Integer] how many attempts that were
      # @raise [Exception] what a job failed with
      # @raise [Failures] if several failed
      def drain(retries: false, signal: nil)
        raise ArgumentError, "signal must be one of #{SIGNALS.join(', ')}" unless [nil, *SIGNALS].include?(signal)

        @jobs.concat(@retries.slice!(0..)) if retries
        errors = []
        handed_back = []
        count = 0
        while (enqueued = @jobs.shift)
          count += 1
          outcome = work(enqueued.job, signal)
          settle(enqueued, outcome, { retry: retries ? @jobs : @retries, requeue: handed_back })
          errors << outcome.failure if failed?(outcome) && !(retries && outcome.retry_at)
        end
        @jobs.concat(handed_back)
        raise errors.size == 1 ? errors.first : Failures.new(errors) unless errors.empty?

        count
      end

      # Forgets all jobs.
      def clear
        [@jobs, @retries, @dead].each(&:clear)
      end

      private

      def enqueued(enqueued)
        @jobs << enqueued
      end

      # Some jobs of a list, as a new one.
      def of(list, job_class)
        return list.dup if job_class.nil?

        name = job_class.is_a?(Module) ? Handler.name_of(job_class) : job_class
        list.select { |enqueued| enqueued.job_class == name }
      end

      # Puts a job where its outcome has it go.
      def settle(enqueued, outcome, lists)
        if outcome.retry_at
          lists[:retry] << enqueued.retried(outcome.retry_at, outcome.failure)
        elsif outcome.answer == :requeue
          lists[:requeue] << enqueued.handed_back
        elsif outcome.status == 'dead'
          @dead << Enqueued.new(enqueued.job, nil, outcome.failure)
        end
      end
    end
  end
end
