# frozen_string_literal: true

require 'json'

module Millrace
  # Names and rules of the wire format: see docs/wire-format.md.
  # @private
  module Wire
    DIRECT = 'jobs.direct'
    CONTROL = 'jobs.control'
    BEGINS = 'jobs.begins'
    LEADER = 'jobs.leader'
    GATED = 'jobs.gated'
    ENDS = 'jobs.ends'
    SCHEDULED = 'scheduled_jobs'
    RETRIES = 'retries'
    DEAD = 'dead_jobs'
    HEARTBEATS = 'heartbeats'
    METRICS = 'job_metrics'

    QUEUE_PREFIX = 'queue.'
    DEFAULT_QUEUE = 'default'
    DEFAULT_RETRY = 25
    MAX_PRIORITY = 10
    MAX_RECORD = 16 << 20
    MAX_QUEUE_NAME = 200
    MAX_LIMIT_KEY = 200
    MAX_COUNT = 1 << 31
    # The length in bytes of the longest AMQP short string.
    MAX_SHORT = 255
    # The nesting that a Ruby thread, with its stack of a megabyte, can read and write without an
    # overflow.
    MAX_NESTING = 1_000

    # The members of a job that the format names.
    JOB_MEMBERS = %w[
      jid class args queue retry retry_count priority tags expires_at timeout dead backtrace
      enqueued_at created_at failed_at error_class error_message millrace gate
    ].freeze

    # A message to publish, and where to publish it.
    Message = Struct.new(:exchange, :key, :body, :message_id, :type, :priority, :headers, :reply_to, :correlation_id, :mandatory,
                         keyword_init: true) do
      def initialize(mandatory: true, priority: 0, headers: {}, **rest)
        super
      end
    end

    module_function

    # Raises ArgumentError if this cannot be the name of a queue.
    def check_queue(name)
      raise ArgumentError, 'queue must be a text, and not empty' unless name.is_a?(String) && !name.empty?

      check_text('queue name', name, MAX_QUEUE_NAME)
    end

    # Raises ArgumentError if no limited or unique job can have this key.
    def check_key(what, key)
      raise ArgumentError, "#{what} must be a text" unless key.is_a?(String)

      check_text(what, key, MAX_LIMIT_KEY)
    end

    # Raises ArgumentError unless a text is Unicode, short enough, and without control characters.
    def check_text(what, text, most)
      raise ArgumentError, "#{what} is not Unicode" unless unicode?(text)
      raise ArgumentError, "#{what} is longer than #{most} bytes" if text.encode(Encoding::UTF_8).bytesize > most
      raise ArgumentError, "#{what} has a control character" if text.encode(Encoding::UTF_8).match?(/[[:cntrl:]]/)
    end

    # Returns whether a text can be written as UTF-8.
    def unicode?(text)
      text.encoding == Encoding::UTF_8 ? text.valid_encoding? : !!text.encode(Encoding::UTF_8)
    rescue EncodingError
      false
    end

    # Returns a text for a message's property, or nil if the property cannot have it.
    def short(text)
      text if !text.empty? && text != 'amqp-1.0' && text.bytesize <= MAX_SHORT && unicode?(text)
    end

    # Returns a trace context, or nil if the value is not a valid one.
    def traceparent(value)
      value if value.is_a?(String) && value.b.match?(/\A[\x20-\x7e]{1,255}\z/n)
    end

    # Returns the headers that pass a trace context on.
    def trace_headers(value)
      trace = traceparent(value)
      trace ? { 'traceparent' => trace } : {}
    end

    # Returns a time of the format in seconds, or nil. A number too large for seconds is read as
    # milliseconds.
    def clock(value)
      return unless value.is_a?(Numeric)

      value /= 1000.0 if value.abs > 1e11
      value.to_f if value.abs <= 1e11
    end

    # Returns a number that JSON writes as a number. It writes a BigDecimal, a Rational or a duration
    # of ActiveSupport as a text.
    def number(value)
      case value
      when Integer, Float then value
      else value.to_f
      end
    end

    # Returns a number. Raises ArgumentError unless it is a whole number in the range.
    def check_number(name, value, least, most)
      return value if value.is_a?(Integer) && value.between?(least, most)

      raise ArgumentError, "#{name} must be a whole number from #{least} to #{most}"
    end

    # Writes JSON. Raises ArgumentError if JSON cannot have the value.
    def dump(value)
      JSON.generate(value, max_nesting: MAX_NESTING)
    rescue JSON::GeneratorError, JSON::NestingError, EncodingError => e
      raise ArgumentError, e.message
    end

    # Returns a text of any encoding as UTF-8. Bytes that are not Unicode are replaced.
    def valid(text)
      return text if text.encoding == Encoding::UTF_8 && text.valid_encoding?

      text = text.dup.force_encoding(Encoding::UTF_8) if text.encoding == Encoding::BINARY
      text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace, replace: "\u{fffd}").scrub("\u{fffd}")
    end

    # Splices a job, byte for byte, into the head of a record.
    def splice(head, job)
      head.b.chop << ',"job":' << job.b << '}'
    end

    # Returns the time in seconds since the epoch.
    def now
      Process.clock_gettime(Process::CLOCK_REALTIME)
    end

    # Returns the seconds of a monotonic clock.
    def ticks
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
