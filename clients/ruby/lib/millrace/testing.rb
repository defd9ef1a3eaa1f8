# frozen_string_literal: true

require 'millrace'
require 'millrace/keys'

module Millrace
  # Producers for tests, without a broker. {Inline} runs a job as soon as it is enqueued. {Fake}
  # collects jobs until they are drained. Both check jobs as a {Client} does, pass args through
  # JSON, and decide outcomes as a worker does. They run the classes that include {Handler}. Give
  # them a worker to use its handlers, its middleware, and its hooks `:failure` and `:death`.
  #
  # @example
  #   client = Millrace.client = Millrace::Testing::Fake.new
  #   sign_up('ann@example.com')
  #   assert_equal ['ann@example.com'], client.jobs.first.args
  #   client.drain
  module Testing
    # Raised when several jobs of one {Fake#drain} failed.
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

    # A job that was enqueued, waits for a retry, or is dead.
    class Enqueued
      # @return [Job]
      attr_reader :job
      # @return [Float, nil] when it is due, in seconds since the epoch; nil: immediately
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

      # @return [Array] the arguments that its handler gets
      def args
        job.args
      end

      # @return [Hash{String => Object}, nil] the member `gate` of a limited or unique job, with its `key`
      #   if it has one; nil for other jobs
      def gate
        job.members['gate']
      end

      # Returns the job for its next attempt.
      # @private
      def retried(at, error)
        member = Scan.members(job.raw).find { |found| found.spelled == 'retry_count' }
        body = job.raw.dup
        body[member.from...member.to] = (job.retry_count + 1).to_s
        Enqueued.new(copy(body), at, error)
      end

      # Returns a copy of the job in which no signal is set.
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

    # The base of both clients.
    # @private
    class Offline < Client
      # Signals that can end a job early.
      SIGNALS = %i[cancelled timeout stopping].freeze

      def initialize(worker = nil)
        super('amqp://nowhere.invalid')
        @worker = worker || Worker.new('amqp://nowhere.invalid')
        @periodic = {}
        @limits = {}
        @queues = {}
        @keys = Keys.new
      end

      # Keeps what a source defines. Nothing is due in a test, and jobs do not wait.
      # @return [Defined]
      # @raise [Invalid]
      def define(source, jobs = nil, limits: nil, queues: nil, **)
        Defined.command(source, jobs, limits, queues) # checks them
        before = named([*(periodic(source) if jobs), *(limits(source) if limits), *(queues(source) if queues)])
        now = named([*jobs, *limits, *queues])
        [[@periodic, jobs], [@limits, limits], [@queues, queues]].each { |kept, list| kept[source] = list.dup if list }
        kept = now.keys & before.keys
        changed = kept.reject { |id| now[id] == before[id] }
        made, forgotten = [now.keys - kept, before.keys - kept].map { |ids| ids.map(&:last) }
        Defined.new(made: made, changed: changed.map(&:last), forgotten: forgotten, unchanged: kept.size - changed.size)
      end

      # Returns the periodic jobs that a source has defined.
      # @return [Array<PeriodicJob>]
      def periodic(source)
        @periodic.fetch(source, []).dup
      end

      # Returns the limits that a source has defined.
      # @return [Array<Limit>]
      def limits(source)
        @limits.fetch(source, []).dup
      end

      # Returns the governed queues that a source has defined.
      # @return [Array<GovernedQueue>]
      def queues(source)
        @queues.fetch(source, []).dup
      end

      private

      # Returns definitions by their kind and name.
      def named(all)
        all.to_h { |definition| [[definition.class, definition.name], definition.definition] }
      end

      def publish(new_job, seconds)
        Answered.new(decide(new_job, seconds).first)
      end

      # Takes a job that is not a duplicate. Returns its jid, and which job stays.
      def decide(new_job, _seconds)
        jid, message = new_job.prepare(Wire.now)
        body, at = message.key == Wire::SCHEDULED ? unwrap(message.body) : [message.body, nil]
        members = Parse.json(body.b)
        job = Job.new(body, members['queue'], headers: message.headers, message_id: jid)
        decision = @keys.decide(job) { |waiting| replace(waiting) }
        enqueued(Enqueued.new(job, at || members.dig('gate', 'at'))) unless decision.duplicate?
        [jid, decision]
      end

      # Removes a job that has not run, for a later one with the same key. Returns whether it did.
      def replace(_jid)
        false
      end

      # Returns the job's bytes in a scheduled job, and when it is due.
      def unwrap(body)
        members = Scan.members(body).to_h { |member| [member.spelled, body.byteslice(member.from...member.to)] }
        [members['job'], JSON.parse(members['scheduled_at'])]
      end

      # Runs one attempt, with the hooks that a worker calls, and returns the outcome.
      def work(job, signal = nil)
        @keys.begins(job)
        attempt = Attempt.new(@worker, job, signal)
        outcome = attempt.run
        raise attempt.error if attempt.error.is_a?(SignalException) # Ctrl-C must end the tests

        @worker.hooks.call_here(:failure, job, outcome.failure) if outcome.failure
        @worker.hooks.call_here(:death, job, outcome.died) if outcome.died
        outcome
      end

      # Returns whether a job failed. A job that its handler or its backoff discards has ended well.
      def failed?(outcome)
        !outcome.failure.nil? && (outcome.status != 'discarded' || !outcome.died.nil?)
      end
    end

    # A client that runs a job's handler immediately. The caller gets the error that the handler
    # raises. {Discard} is no error here: the job ended well. If the handler raises after the job's
    # timeout, the caller gets {Timeout}.
    class Inline < Offline
      private

      def enqueued(enqueued)
        outcome = work(enqueued.job)
        @keys.ends(enqueued.job)
        raise outcome.failure if failed?(outcome)
      end
    end

    # A client that collects jobs.
    class Fake < Offline
      # @param worker [Worker, nil] its handlers run drained jobs too, beside the classes that
      #   include {Handler}
      def initialize(worker = nil)
        super
        @jobs = []
        @retries = []
        @dead = []
      end

      # Returns the jobs that were enqueued and not drained.
      # @param job_class [String, Class, nil] lists the jobs of this class only
      # @return [Array<Enqueued>]
      def jobs(job_class = nil)
        of(@jobs, job_class)
      end

      # Returns the jobs that failed and wait for a retry. They have the next {Job#attempt}.
      # @param (see #jobs)
      # @return [Array<Enqueued>]
      def retries(job_class = nil)
        of(@retries, job_class)
      end

      # Returns the dead jobs.
      # @param (see #jobs)
      # @return [Array<Enqueued>]
      def dead(job_class = nil)
        of(@dead, job_class)
      end

      # Runs each job once, without waiting for scheduled ones, and then the jobs that these
      # enqueue. After all have run, it raises their errors: the error itself, or {Failures} if
      # there are several.
      #
      # @param retries [Boolean] whether failed jobs, including those of earlier calls, run again as
      #   often as their `retry` allows. Then only jobs that were given up count as failed
      # @param signal [Symbol, nil] the signal that is set when each job begins: `:cancelled`;
      #   `:timeout`, for jobs that have a timeout or whose handler has one; or `:stopping`, after
      #   which {#jobs} has the jobs that were handed back
      # @return [Integer] the number of attempts
      # @raise [Exception] the error of a job
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

      # Removes all jobs.
      def clear
        [@jobs, @retries, @dead, @keys].each(&:clear)
      end

      private

      def enqueued(enqueued)
        @jobs << enqueued
      end

      def replace(jid)
        !@jobs.reject! { |enqueued| enqueued.job.jid == jid && enqueued.job.retry_count.zero? }.nil?
      end

      # Returns a new list of the jobs of a class, or of all jobs.
      def of(list, job_class)
        return list.dup if job_class.nil?

        name = job_class.is_a?(Module) ? Handler.name_of(job_class) : job_class
        list.select { |enqueued| enqueued.job_class == name }
      end

      # Puts a job into the list that its outcome demands.
      def settle(enqueued, outcome, lists)
        if outcome.retry_at
          lists[:retry] << enqueued.retried(outcome.retry_at, outcome.failure)
        elsif outcome.answer == :requeue
          lists[:requeue] << enqueued.handed_back
        else
          @keys.ends(enqueued.job)
          @dead << Enqueued.new(enqueued.job, nil, outcome.failure) if outcome.status == 'dead'
        end
      end
    end
  end
end
