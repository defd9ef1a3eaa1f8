# frozen_string_literal: true

module Millrace
  # The base class of a client's errors.
  class Error < StandardError; end

  # Raised when a job breaks a rule. Nothing was sent.
  class Invalid < Error; end

  # Raised when the broker does not take the job. Its queue is full or down, or does not exist and
  # no sidecar can make it.
  class Refused < Error; end

  # Raised when there was no connection before the deadline. The broker does not have the job.
  class Unreachable < Error; end

  # Raised when the job was sent, and no answer came before the deadline or before the client was
  # closed. The job may have arrived. Enqueue it again with the option `jid`, so that both copies
  # have one id.
  class Unconfirmed < Error
    # @return [String, nil] the id of the job
    attr_reader :jid

    def initialize(message = nil, jid = nil)
      super(message)
      @jid = jid
    end
  end

  # Raised when a unique job is published, and no leader has said whether it is a duplicate. A leader
  # decides about it later. Do not enqueue it again.
  class Undecided < Error
    # @return [String] the id of the job
    attr_reader :jid

    def initialize(message, jid)
      super(message)
      @jid = jid
    end
  end

  # Raised when the client was closed. The broker does not have the job.
  class Closed < Error; end

  # Raised when some jobs of a bulk were not enqueued.
  class BulkError < Error
    # @return [Array<String, nil>] a jid, or nil, for each job
    attr_reader :jids
    # @return [Hash{Integer => Error}] the error of each job that failed, by its index
    attr_reader :errors

    def initialize(jids, errors)
      index, error = errors.min_by(&:first)
      super("#{errors.size} of #{jids.size} jobs were not enqueued, the first is job #{index}: #{error.message}")
      @jids = jids
      @errors = errors
    end
  end

  # Raised when a sidecar answers an {Inspector} with an error.
  class ApiError < Error
    # @return [Integer] the HTTP status
    attr_reader :status
    # @return [String] the code of the error, for programs: `conflict`, `access_refused`
    attr_reader :code
    # @return [String] the reason, for people
    attr_reader :reason

    def initialize(status, code, reason)
      super("#{reason} (#{status} #{code})")
      @status = status
      @code = code
      @reason = reason
    end
  end

  # Raised when there is no such job or queue.
  class NotFound < ApiError; end

  # The base class of errors with which a handler decides the outcome of its job.
  class Verdict < StandardError
    def initialize(reason)
      super(reason.is_a?(Exception) ? reason.message : reason.to_s)
      @error = reason if reason.is_a?(Exception)
    end

    # @return [Exception, nil] the error that it wraps, or that was being rescued when it was raised
    def error
      @error || cause
    end
  end

  # Raised by a handler to drop its job: no retry, and no dead job.
  class Discard < Verdict
    def initialize(reason = 'discarded')
      super
    end
  end

  # Raised by a handler to end its job without further attempts. The job becomes a dead job that
  # shows the reason. If the Kill wraps another error, or is raised while one is rescued, the dead
  # job shows the class of that error.
  class Kill < Verdict
    def initialize(reason = 'killed')
      super
    end

    # The name in the dead job, if it wraps no other error.
    def error_class
      'Killed'
    end
  end

  # Raised by a handler to fail with a given time until the next attempt.
  class RetryIn < Verdict
    # @return [Numeric] seconds
    attr_reader :seconds

    def initialize(seconds, error = 'tried again later')
      super(error)
      @seconds = seconds
    end
  end

  # Raised by a handler that gives up because the worker is stopping. The job goes back to its queue
  # unchanged. If the worker is not stopping, this is a failure.
  class HandBack < StandardError
    def initialize(text = 'handed back by a worker that is not stopping')
      super
    end

    # The name in the record of a failure.
    def error_class
      'HandBack'
    end
  end

  # The failure of a job that ran longer than its timeout.
  class Timeout < StandardError
    def initialize(seconds)
      super("ran longer than #{(seconds % 1).zero? ? seconds.to_i : seconds} s")
    end

    # The name in the record of the failure.
    def error_class
      'Timeout'
    end
  end

  # The failure of a job whose class has no handler.
  class UnknownClass < StandardError
    def initialize(name)
      super("no handler for class #{name}")
    end

    # The name in the record of the failure.
    def error_class
      'UnknownClass'
    end
  end
end
