# frozen_string_literal: true

require 'securerandom'

module Millrace
  # A job to enqueue, as client middleware and {Client#enqueue_bulk} get it.
  class NewJob
    # The options of a job, beside its class and args. Limits count the job if it is `limited` or has
    # a `limit_key`, which names what they count it under, such as a customer; '' is none. Other jobs
    # with the same key as a job that is `unique` are duplicates, which do not run. It is true, or a
    # hash with some of `key`, `by`, `while`, `for`, `on`, `wait` and `max`.
    OPTIONS = %i[queue retry priority tags jid expires_at timeout dead backtrace limited limit_key unique fields traceparent].freeze
    # Members whose values are written unchanged.
    PLAIN = %i[retry priority tags dead backtrace].freeze
    private_constant :PLAIN

    # @return [String] the class that a worker runs
    attr_accessor :job_class
    # @return [Array] the arguments: only values that JSON has
    attr_accessor :args
    # @return [Time, Numeric, nil] when the job is due; nil: now
    attr_accessor :at
    # @return [Hash{Symbol => Object}] some of {OPTIONS}
    attr_accessor :options

    # @param job_class [String, Class] its class
    # @param args [Array] its arguments
    # @param at [Time, Numeric, nil] when it is due; nil: now
    # @param options some of {OPTIONS}
    def initialize(job_class, args = [], at: nil, **options)
      @job_class = job_class
      @args = args
      @at = at
      @options = options
      return unless job_class.is_a?(Module)

      @job_class = Handler.name_of(job_class)
      @options = Handler.options_of(job_class).merge(options)
    end

    # Returns the job, unique by the defaults if it was not unique.
    # @private
    def as_unique
      options[:unique] ? self : NewJob.new(job_class, args, at: at, **options, unique: true)
    end

    # Returns the jid and the message. Raises Invalid if the job breaks a rule.
    # @private
    def prepare(now)
      check
      jid = options[:jid] || SecureRandom.hex(16)
      [jid, message(jid, Wire.dump(members(jid, now)))]
    rescue ArgumentError, TypeError => e
      raise Invalid, "#{job_class.inspect[0, 100]}: #{e.message}"
    end

    private

    def queue
      options.fetch(:queue, Wire::DEFAULT_QUEUE)
    end

    def limited?
      options.fetch(:limited, false) || !limit_key.nil?
    end

    # Returns the key, or nil if it is empty.
    def limit_key
      options[:limit_key] unless options[:limit_key] == ''
    end

    # Returns the member of a limited or unique job, by its name. A unique job waits in jobs.gated
    # until it is due.
    def gate
      unique = Unique.member(options[:unique])
      return {} unless limited? || unique

      { 'gate' => { 'key' => limit_key, 'unique' => unique, 'at' => (seconds(at) if unique && at) }.compact }
    end

    def members(jid, now)
      found = { 'jid' => jid, 'class' => job_class, 'args' => args, 'queue' => queue, 'retry_count' => 0,
                (at ? 'created_at' : 'enqueued_at') => now, **options.slice(*PLAIN).transform_keys(&:to_s), **gate }
      found['timeout'] = Wire.number(options[:timeout]) if options.key?(:timeout)
      found['expires_at'] = seconds(options[:expires_at]) if options.key?(:expires_at)
      found.merge!(options[:fields].transform_keys(&:to_s)) if options[:fields]
      found
    end

    def message(jid, job)
      exchange, key = limited? || options[:unique] ? ['', Wire::GATED] : [Wire::DIRECT, queue]
      body = job
      if at && !options[:unique]
        exchange = ''
        key = Wire::SCHEDULED
        body = Wire.splice(Wire.dump({ 'type' => 'scheduled_job', 'jid' => jid, 'scheduled_at' => seconds(at) }), job)
      end
      raise ArgumentError, "it has #{body.bytesize} bytes, at most #{Wire::MAX_RECORD} are allowed" if body.bytesize > Wire::MAX_RECORD

      Wire::Message.new(exchange: exchange, key: key, body: body, message_id: Wire.short(jid), type: Wire.short(job_class),
                        priority: options.fetch(:priority, 0), headers: Wire.trace_headers(options[:traceparent]))
    end

    def seconds(time)
      value = time.is_a?(Time) ? time.to_f : time
      raise ArgumentError, "#{time.inspect} is no time" unless value.is_a?(Numeric) && value.to_f.finite?

      Wire.number(value)
    end

    def check
      unknown = options.keys - OPTIONS
      raise ArgumentError, "there is no option #{unknown.join(', ')}; members of your own go into fields" unless unknown.empty?
      raise ArgumentError, 'class must be a text, and not empty' unless job_class.is_a?(String) && !job_class.empty?
      raise ArgumentError, 'args must be an array' unless args.is_a?(Array)

      Wire.check_queue(queue)
      check_options
      [job_class, args, options[:jid]].each { |value| Plain.check(value) }
    end

    def check_options
      number(:priority, Wire::MAX_PRIORITY)
      number(:retry, Wire::MAX_COUNT) unless [true, false].include?(options[:retry])
      raise ArgumentError, 'jid must be a text' unless options[:jid].nil? || options[:jid].is_a?(String)
      raise ArgumentError, 'timeout must be above 0' unless options.fetch(:timeout, 1).then { |t| t.is_a?(Numeric) && t.positive? }

      check_flags
      check_tags
      Wire.check_key('limit_key', options[:limit_key]) unless options[:limit_key].nil?
      check_fields
    end

    def check_fields
      fields = options[:fields] || {}
      raise ArgumentError, 'fields must be a hash' unless fields.is_a?(Hash)

      named = fields.keys.map(&:to_s) & Wire::JOB_MEMBERS
      raise ArgumentError, "field #{named.first} is named by the format: there is an option for it, or it is not yours" if named.any?

      # The names become names of members, so symbols are allowed.
      fields.each { |name, value| [name.to_s, value].each { |v| Plain.check(v, 1) } }
    end

    def check_flags
      %i[dead limited].each do |name|
        raise ArgumentError, "#{name} must be true or false" unless [true, false].include?(options.fetch(name, true))
      end
    end

    def check_tags
      tags = options.fetch(:tags, [])
      raise ArgumentError, 'tags must be an array of texts' unless tags.is_a?(Array) && tags.all?(String)
    end

    def number(name, most)
      Wire.check_number(name, options.fetch(name, 0), 0, most)
    end
  end

  # Checks that JSON has a value. Ruby would write other values in some other form, and handlers
  # would get that.
  # @private
  module Plain
    module_function

    def check(value, depth = 0)
      case value
      when nil, true, false, Integer, Float then nil
      when String then raise ArgumentError, 'there is text that is not Unicode' unless Wire.unicode?(value)
      when Array, Hash then check_inside(value, depth + 1)
      when Symbol then raise ArgumentError, "JSON has no Symbol: write #{value.name.inspect} for #{value.inspect}"
      else raise ArgumentError, "JSON has no #{value.class}"
      end
    end

    def check_inside(value, depth)
      raise ArgumentError, "it is nested deeper than #{Wire::MAX_NESTING}" if depth > Wire::MAX_NESTING - 2
      return value.each { |v| check(v, depth) } if value.is_a?(Array)

      value.each do |name, v|
        raise ArgumentError, "JSON has no #{name.class} as a key: write it as a text" unless name.is_a?(String) || name.is_a?(Symbol)

        check(name)
        check(v, depth)
      end
    end
  end
  private_constant :Plain
end
