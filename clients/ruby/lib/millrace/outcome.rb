# frozen_string_literal: true

module Millrace
  # The outcome of a delivery: the record to publish, and the answer to the broker, by default an
  # acknowledgement.
  # @private
  class Outcome
    # `died` is the error of a job that was given up, for the death hooks. `failure` is the error of
    # a failed attempt, for the failure hooks.
    attr_accessor :status, :died, :failure
    attr_reader :stream, :record, :error_class, :answer, :retry_at, :reason

    def initialize(status: nil, stream: nil, record: nil, error_class: nil, died: nil, answer: :ack, retry_at: nil, reason: nil)
      @status = status
      @stream = stream # that gets the record before the broker gets the answer
      @record = record
      @error_class = error_class
      @died = died
      @answer = answer # :ack, :requeue, or :reject, for a message that no worker can run
      @retry_at = retry_at
      @reason = reason # why the job was discarded, for the log
    end

    # Returns whether the job has ended with this delivery. It has not if it is handed back, or if it
    # is dropped.
    def ends?
      @answer == :reject || (@answer == :ack && !@status.nil?)
    end

    SUCCEEDED = new(status: 'success').freeze
    HANDED_BACK = new(answer: :requeue).freeze
    UNDECODABLE = new(answer: :reject).freeze
    # The outcome of a job that ran elsewhere, or that another copy stands for.
    DROPPED = new.freeze

    # An error that the library itself makes.
    class Said < StandardError
      attr_reader :error_class

      def initialize(error_class, text)
        super(text)
        @error_class = error_class
      end
    end

    # Decides outcomes.
    module Judge
      module_function

      # Returns the outcome of a job whose handler failed. `why` is the reason of its cancel signal,
      # if that was set.
      def failed(job, error, now, stopping: false, why: nil, retry_in: nil, log: Millrace.logger)
        return discarded(Record.message(error)) if error.is_a?(Discard)

        unless error.is_a?(Kill)
          return HANDED_BACK if stopping && (error.is_a?(HandBack) || why == :stopping)
          return discarded('cancelled') if why == :cancelled
        end
        failure(job, error, now, retry_in, log).tap { |outcome| outcome.failure = error }
      end

      # Returns the outcome of a job that is dropped.
      def discarded(reason)
        Outcome.new(status: 'discarded', reason: reason)
      end

      # Returns the outcome of a failed attempt.
      def failure(job, error, now, retry_in, log)
        return bury(job, error, 'killed', now) if error.is_a?(Kill)
        return exhausted(job, error, now) if job.retry_count >= job.retries

        case (after = Backoff.after(job, error, retry_in, log))
        when :kill then bury(job, error, 'killed', now)
        when :discard then Outcome.new(status: 'discarded', error_class: Record.error_class(error))
        else write(error, Wire::RETRIES, 'failed', retry_at: now + after) { Record.retry(job, error, now, now + after) }
        end
      end

      # Returns the outcome of a job without attempts left.
      def exhausted(job, error, now)
        return bury(job, error, 'exhausted', now) if job.dead

        Outcome.new(status: 'discarded', error_class: Record.error_class(error), died: error)
      end

      # Returns the outcome of a job that becomes a dead job.
      def bury(job, error, reason, now)
        outcome = write(error, Wire::DEAD, 'dead') { Record.dead(job, error, reason, now) }
        outcome.died = error
        outcome
      end

      # Returns an outcome with a record. If the record is too large, the outcome is a rejection:
      # the sidecar makes a dead job of it, shortened.
      def write(error, stream, status, retry_at: nil)
        name = Record.error_class(error)
        record = yield
        too_large = record.bytesize > Wire::MAX_RECORD
        return Outcome.new(answer: :reject, status: 'dead', error_class: name, died: error) if too_large

        Outcome.new(stream: stream, record: record, status: status, error_class: name, retry_at: retry_at)
      end

      # Returns the outcome of a job that expired before it began. No hook is called.
      def expired(job, now)
        return Outcome.new(status: 'expired', error_class: 'expired') unless job.dead

        outcome = bury(job, Said.new('expired', 'expired before it began'), 'expired', now)
        outcome.status = 'expired'
        outcome.died = nil
        outcome
      end

      # Returns the outcome of a job that killed too many workers.
      def poisoned(job, deaths, now)
        bury(job, Said.new('poison', "its worker died #{deaths} times while it ran"), 'poison', now)
      end
    end
  end
end
