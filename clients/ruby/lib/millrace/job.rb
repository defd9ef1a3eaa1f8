# frozen_string_literal: true

require 'digest/sha2'
require_relative 'parse'

module Millrace
  # A job, as its handler gets it.
  class Job
    # How many lines of a backtrace are kept at most.
    ALL_LINES = 100
    # How many lines are kept if the job sets no number.
    LINES = 20
    private_constant :ALL_LINES, :LINES

    # @return [String] the job's id
    attr_reader :jid
    # @return [String] the job's class
    attr_reader :job_class
    # @return [Array] the arguments as JSON values; integers are exact, of any size
    attr_reader :args
    # @return [Integer] the number of this attempt, from 1
    attr_reader :attempt
    # @return [Integer] how often the job has failed
    attr_reader :retry_count
    # @return [String] the queue that it came from
    attr_reader :queue
    # @return [Integer] 0 to 10
    attr_reader :priority
    # @return [Array<String>]
    attr_reader :tags
    # @return [Hash{String => Object}] the message's headers
    attr_reader :headers
    # @return [String] the body of the job, byte for byte
    attr_reader :raw
    # @return [Symbol, nil] why the handler should end now, nil if it may continue. `:cancelled`:
    #   the job was cancelled; `:timeout`: its timeout is over; `:stopping`: the worker's stop
    #   timeout is over
    attr_reader :end
    # @return [Hash{String => Object}] all members of the job, those of the format and the {#fields}
    attr_reader :members

    # @private
    attr_reader :retries, :dead, :timeout, :backtrace, :enqueued_at

    # Reads a delivery. Raises ArgumentError if it is not a job.
    # @private
    def initialize(raw, queue, headers: nil, message_id: nil, sent: nil)
      # A string from bunny is not frozen, and nothing else uses it.
      @raw = raw.frozen? ? raw.dup : raw
      @members = Parse.job(@raw)
      @queue = queue
      @headers = headers || {}
      read_identity(message_id)
      read_policy
      @enqueued_at = Wire.clock(@members['enqueued_at']) || sent
      @args = @members['args'].nil? ? [] : @members['args']
      @stopping = false
    end

    # @return [Hash{String => Object}] the program's own members of the job, such as a tenant: those
    #   that were enqueued with the option `fields`
    def fields
      @fields ||= @members.except(*Wire::JOB_MEMBERS).freeze
    end

    # @return [Boolean] whether the worker is stopping. The handler may continue until the worker's
    #   stop timeout is over
    def stopping?
      @stopping
    end

    # @return [String, nil] the trace context that came with the job
    def traceparent
      Wire.traceparent(@headers['traceparent'])
    end

    # @return [Boolean] whether the handler should end now. {#end} has the reason
    def cancelled?
      !@end.nil?
    end

    # Sleeps for a number of seconds, but ends earlier when the job should end.
    # @param seconds [Numeric]
    # @return [Boolean] whether the job should end: {#stopping?} or {#cancelled?}
    def wait(seconds)
      # The bell must exist before the flags are checked: it is rung after a flag is set.
      bell = (@bell ||= Bell.new)
      bell.wait(seconds) { @stopping || @end }
      @stopping || !@end.nil?
    end

    # @private
    def signal(stopping: false, why: nil)
      @stopping ||= stopping
      @end ||= why
      @bell&.ring
    end

    # @private
    def expired?(now)
      !@expires_at.nil? && @expires_at < now
    end

    private

    def read_identity(message_id)
      @job_class = text('class')
      raise ArgumentError, 'it has no class' if @job_class.empty?

      name = text('queue')
      Wire.check_queue(name) unless name == @queue || @members['queue'].nil?
      @jid = text('jid')
      @jid = message_id.to_s if @jid.empty?
      @jid = Digest::SHA256.hexdigest(@raw)[0, 24] if @jid.empty?
    end

    def read_policy
      @retries = retries_of(@members['retry'])
      @retry_count = count('retry_count', Wire::MAX_COUNT)
      @attempt = @retry_count + 1
      @priority = count('priority', Wire::MAX_PRIORITY)
      @tags = tags_of(@members['tags'])
      @dead = flag('dead')
      @expires_at = time('expires_at')
      @timeout = seconds(@members['timeout'])
      @backtrace = lines(@members['backtrace'])
    end

    def text(name)
      value = @members[name]
      return '' if value.nil?
      raise ArgumentError, "#{name} is no text" unless value.is_a?(String)

      value
    end

    def count(name, most)
      value = @members[name]
      return 0 if value.nil?

      value = value.to_i if value.is_a?(Float) && value.finite? && (value % 1).zero?
      return value if value.is_a?(Integer) && value.between?(0, most)

      raise ArgumentError, "#{name} must be a whole number from 0 to #{most}"
    end

    def retries_of(value)
      case value
      when nil, true then Wire::DEFAULT_RETRY
      when false then 0
      else count('retry', Wire::MAX_COUNT)
      end
    end

    def flag(name)
      value = @members[name]
      return true if value.nil?
      raise ArgumentError, "#{name} is not true or false" unless [true, false].include?(value)

      value
    end

    def tags_of(value)
      return [] if value.nil?
      raise ArgumentError, 'tags is no array of texts' unless value.is_a?(Array) && value.all?(String)

      value
    end

    def time(name)
      value = @members[name]
      return if value.nil?

      Wire.clock(value) || raise(ArgumentError, "#{name} is no time")
    end

    # Returns the value if it is a usable number of seconds, else nil. Only workers use it.
    def seconds(value)
      value if value.is_a?(Numeric) && value.positive? && value < 1e9
    end

    def lines(value)
      return LINES if value.nil?
      return ALL_LINES if value == true
      return 0 unless value.is_a?(Numeric) && value.positive?

      [value, ALL_LINES].min.to_i
    end
  end
end
