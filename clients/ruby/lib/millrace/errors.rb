# frozen_string_literal: true

module Millrace
  # What every error of a client is.
  class Error < StandardError; end

  # The job breaks a rule. Nothing was sent.
  class Invalid < Error; end

  # The broker said no: the queue is full or down, or there is none and no sidecar to make it.
  class Refused < Error; end

  # There was no connection until the deadline. The broker does not have the job.
  class Unreachable < Error; end

  # The job was sent, and the deadline passed, or the client was closed, without an answer: it may have arrived. Enqueue it again with the
  # option `jid`, so that both have one id.
  class Unconfirmed < Error
    # @return [String, nil] the id of the job
    attr_reader :jid

    def initialize(message = nil, jid = nil)
      super(message)
      @jid = jid
    end
  end

  # The client was closed. The broker does not have the job.
  class Closed < Error; end

  # Some jobs of many were not enqueued.
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

  # What a sidecar answered in place of what an {Inspector} asked for.
  class ApiError < Error
    # @return [Integer] of HTTP
    attr_reader :status
    # @return [String] what a program branches on: `conflict`, `access_refused`
    attr_reader :code
    # @return [String] for people
    attr_reader :reason

    def initialize(status, code, reason)
      super("#{reason} (#{status} #{code})")
      @status = status
      @code = code
      @reason = reason
    end
  end

  # There is no such job or queue.
  class NotFound < ApiError; end

  # What a handler raises to say what is to become of its job.
  class Verdict < StandardError
    def initialize(reason)
      super(reason.is_a?(Exception) ? reason.message : reason.to_s)
      @error = reason if reason.is_a?(Exception)
    end

    # @return [Exception, nil] the error that it was made of, or that was being rescued when it was raised
    def error
      @error || cause
    end
  end

  # Raised by a handler that drops its job: no retry, no dead job.
  class Discard < Verdict
    def initialize(reason = 'discarded')
      super
    end
  end

  # Raised by a handler that gives its job up at once: it becomes a dead job, which shows the reason. Made of another error, or raised
  # while one is rescued, it shows the class of that.
  class Kill < Verdict
    def initialize(reason = 'killed')
      super
    end

    # What it is called where it wraps no other error.
    def error_class
      'Killed'
    end
  end

  # Raised by a handler that fails and says after how many seconds it is to be tried again.
  class RetryIn < Verdict
    # @return [Numeric] seconds
    attr_reader :seconds

    def initialize(seconds, error = 'tried again later')
      super(error)
      @seconds = seconds
    end
  end

  # Raised by a handler that gives up because the worker is stopping: the job goes back to its queue as it came. From a worker that is
  # not stopping it is a failure.
  class HandBack < StandardError
    def initialize(text = 'handed back by a worker that is not stopping')
      super
    end

    # What it is called in the record of a failure.
    def error_class
      'HandBack'
    end
  end

  # The failure of a job that ran longer than it may.
  class Timeout < StandardError
    def initialize(seconds)
      super("ran longer than #{(seconds % 1).zero? ? seconds.to_i : seconds} s")
    end

    # What it is called in the record of the failure.
    def error_class
      'Timeout'
    end
  end

  # The failure of a job that no handler is for.
  class UnknownClass < StandardError
    def initialize(name)
      super("no handler for class #{name}")
    end

    # What it is called in the record of the failure.
    def error_class
      'UnknownClass'
    end
  end
end
