# frozen_string_literal: true

require 'digest/sha2'
require_relative 'parse'

module Millrace
  # What a handler works on.
  class Job
    # How many lines of a backtrace are kept at most.
    ALL_LINES = 100
    # How many are kept where the job does not say.
    LINES = 20
    private_constant :ALL_LINES, :LINES

    # @return [String] its id
    attr_reader :jid
    # @return [String] its class
    attr_reader :job_class
    # @return [Array] the arguments, as JSON has them: integers are exact, whatever their size
    attr_reader :args
    # @return [Integer] 1 for the first
    attr_reader :attempt
    # @return [Integer] how often it has failed
    attr_reader :retry_count
    # @return [String] the queue that it came from
    attr_reader :queue
    # @return [Integer] 0 to 10
    attr_reader :priority
    # @return [Array<String>]
    attr_reader :tags
    # @return [Hash{String => Object}] the message's headers
    attr_reader :headers
    # @return [String] the job, byte for byte
    attr_reader :raw
    # @return [Symbol, nil] why the handler should end now, nil if it may continue. `:cancelled`: the job was cancelled; `:timeout`: its
    #   timeout is over; `:stopping`: the worker's stop timeout is over
    attr_reader :end
    # @return [Hash{String => Object}] all its members, those that the format names and the {#fields}
    attr_reader :members

    # @private
    attr_reader :retries, :dead, :timeout, :backtrace, :enqueued_at

    # Reads a delivery, or raises ArgumentError: no worker can decode it.
    # @private
    def initialize(raw, queue, headers: nil, message_id: nil, sent: nil)
      @raw = raw.frozen? ? raw.dup : raw # what bunny gives is ours
      @members = Parse.job(@raw)
      @queue = queue
      @headers = headers || {}
      read_identity(message_id)
      read_policy
      @enqueued_at = Wire.clock(@members['enqueued_at']) || sent
      @args = @members['args'].nil? ? [] : @members['args']
      @stopping = false
    end

    # @return [Hash{String => Object}] the members of your own, such as a tenant: what was enqueued with the option `fields`
    def fields
      @fields ||= @members.except(*Wire::JOB_MEMBERS).freeze
    end

    # @return [Boolean] whether the worker is stopping. The handler may go on until the worker's stop timeout is over
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

    # Sleeps, but no longer than until the job is to end.
    # @param seconds [Numeric]
    # @return [Boolean] whether it is: {#stopping?} or {#cancelled?}
    def wait(seconds)
      bell = (@bell ||= Bell.new) # looked at after it is there: who sets the flags rings after
      bell.wait(seconds) { @stopping || @end }
      @stopping || !@end.nil?
    end

    # @private
    def tell(stopping: false, why: nil)
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

    # Seconds that make sense, in whatever form: only workers look at them.
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
