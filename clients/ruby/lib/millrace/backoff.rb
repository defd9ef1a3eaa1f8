# frozen_string_literal: true

module Millrace
  # Decides how long a failed job waits for its next attempt.
  # @private
  module Backoff
    # A hundred years.
    LONGEST = 100 * 365 * 24 * 3600
    # Results of a handler's function other than a number.
    ENDS = %i[kill discard].freeze

    module_function

    # Returns the seconds until the next attempt, or :kill or :discard if the handler's function
    # returns that.
    def after(job, error, own, log)
      return Wire.number(error.seconds) if error.is_a?(RetryIn) && sensible?(error.seconds, 0)

      answer = own && ask(own, job, error, log)
      return answer if ENDS.include?(answer)

      sensible?(answer, Float::MIN) ? Wire.number(answer) : default(job.retry_count) { |range| rand(range) }
    end

    # Returns the default backoff in seconds. The block draws from a range.
    def default(retry_count)
      [(retry_count**4) + 15 + yield(0..(30 * (retry_count + 1))), LONGEST].min
    end

    # Returns the result of the handler's function. If the function fails or returns an invalid
    # value, it logs that.
    def ask(own, job, error, log)
      answer = own.call(job.retry_count, error, job)
      return answer if answer.nil? || ENDS.include?(answer) || sensible?(answer, -Float::INFINITY)

      raise TypeError, "retry_in must return seconds, nil, :kill or :discard, not #{answer.inspect[0, 100]}"
    rescue Exception => e # rubocop:disable Lint/RescueException -- the job's own error decides what becomes of the job
      Report.retry_in_failed(log, job, e)
    end

    def sensible?(seconds, least)
      seconds.is_a?(Numeric) && seconds.real? && seconds >= least && seconds < 1e10
    end
  end
end
