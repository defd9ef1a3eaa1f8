# frozen_string_literal: true

module Millrace
  # What becomes of a delivery: what is to be written, and how it is answered (acknowledged, if nothing else is said).
  # @private
  class Outcome
    attr_accessor :status, :died
    attr_reader :stream, :record, :error_class, :answer

    def initialize(status: nil, stream: nil, record: nil, error_class: nil, died: nil, answer: :ack)
      @status = status
      @stream = stream # that gets the record first
      @record = record
      @error_class = error_class
      @died = died # it was given up: the death hooks are told
      @answer = answer # :ack, :requeue, or :reject: no worker can do anything with it
    end

    SUCCEEDED = new(status: 'success').freeze
    HANDED_BACK = new(answer: :requeue).freeze
    UNDECODABLE = new(answer: :reject).freeze

    # An error that the library itself speaks of.
    class Said < StandardError
      attr_reader :error_class

      def initialize(error_class, text)
        super(text)
        @error_class = error_class
      end
    end

    # Makes outcomes.
    module Judge
      # A hundred years.
      LONGEST = 100 * 365 * 24 * 3600

      module_function

      # What becomes of a job whose handler failed. `ending` is why its cancel signal was set, if it was.
      def failed(job, error, now, stopping: false, ending: nil, retry_in: nil)
        return Outcome.new(status: 'discarded') if error.is_a?(Discard)
        return bury(job, error, 'killed', now) if error.is_a?(Kill)
        return HANDED_BACK if stopping && (error.is_a?(HandBack) || ending == :stopping)
        return Outcome.new(status: 'discarded') if ending == :cancelled
        return exhausted(job, error, now) if job.retry_count >= job.retries

        due = now + delay(job, error, retry_in)
        write(error, Wire::RETRIES, 'failed') { Record.retry(job, error, now, due) }
      end

      # What becomes of a job that is not tried again.
      def exhausted(job, error, now)
        return bury(job, error, 'exhausted', now) if job.bury

        Outcome.new(status: 'discarded', error_class: Record.error_class(error), died: error)
      end

      # The handler's own backoff where it makes sense, else the usual one.
      def delay(job, error, own)
        return error.seconds if error.is_a?(RetryIn) && sensible?(error.seconds, 0)

        begin
          after = own&.call(job.retry_count, error, job)
        rescue StandardError
          after = nil
        end
        sensible?(after, Float::MIN) ? after : backoff(job.retry_count) { |range| rand(range) }
      end

      def sensible?(seconds, least)
        seconds.is_a?(Numeric) && seconds.real? && seconds >= least && seconds < 1e10
      end

      # The usual backoff in seconds; the block draws from a range.
      def backoff(retry_count)
        [(retry_count**4) + 15 + yield(0..(30 * (retry_count + 1))), LONGEST].min
      end

      # Gives a job up.
      def bury(job, error, reason, now)
        outcome = write(error, Wire::DEAD, 'dead') { Record.dead(job, error, reason, now) }
        outcome.died = error
        outcome
      end

      # Writes a record. What would be too large is rejected: the sidecar buries that, shortened.
      def write(error, stream, status)
        name = Record.error_class(error)
        record = yield
        too_large = record.bytesize > Wire::MAX_RECORD
        return Outcome.new(answer: :reject, status: 'dead', error_class: name, died: error) if too_large

        Outcome.new(stream: stream, record: record, status: status, error_class: name)
      end

      # Gives up a job that is past its time before it begins. No hook is told.
      def expired(job, now)
        return Outcome.new(status: 'expired', error_class: 'expired') unless job.bury

        outcome = bury(job, Said.new('expired', 'expired before it began'), 'expired', now)
        outcome.status = 'expired'
        outcome.died = nil
        outcome
      end

      # Gives up a job that killed too many workers.
      def poisoned(job, deaths, now)
        bury(job, Said.new('poison', "its worker died #{deaths} times while it ran"), 'poison', now)
      end
    end
  end
end
