# frozen_string_literal: true

module Millrace
  # The option `unique` of a job.
  # @private
  module Unique
    PARTS = %w[class queue args jid].freeze
    MOST_PARTS = 16
    MOST_SECONDS = 366 * 24 * 3600
    CHOICES = { while: %w[unfinished waiting], on: %w[keep replace] }.freeze
    TIMES = %i[for wait max].freeze

    module_function

    # Returns the member `unique` of a job, or nil if it is not unique. Raises ArgumentError if it
    # breaks a rule.
    def member(unique)
      return unique ? {} : nil if [nil, true, false].include?(unique)
      raise ArgumentError, 'unique must be true, false or a hash' unless unique.is_a?(Hash)

      unique = unique.transform_keys(&:to_sym).compact
      raise ArgumentError, 'unique has a key and parts: choose one' if unique.key?(:key) && unique.key?(:by)
      raise ArgumentError, 'unique: max needs wait' if unique.key?(:max) && !unique.key?(:wait)

      unique.to_h { |name, value| [name.to_s, checked(name, value)] }
    end

    # Returns a member as JSON has it.
    def checked(name, value)
      return check_key(value) if name == :key
      return check_parts(value) if name == :by
      return check_time(name, value) if TIMES.include?(name)

      choices = CHOICES.fetch(name) { raise ArgumentError, "unique has no option #{name}" }
      choices.include?(value.to_s) ? value.to_s : raise(ArgumentError, "unique: #{name} must be #{choices.join(' or ')}")
    end

    def check_key(key)
      Wire.check_key('key of unique', key)
      raise ArgumentError, 'key of unique is empty' if key.empty?

      key
    end

    def check_parts(parts)
      counts = parts.is_a?(Array) && parts.size.between?(1, MOST_PARTS)
      raise ArgumentError, "unique: by must be an array of 1 to #{MOST_PARTS} parts" unless counts

      wrong = parts.reject { |part| PARTS.include?(part.to_s) || path?(part) }
      return parts.map(&:to_s) if wrong.empty?

      raise ArgumentError, "unique: #{wrong.first.inspect[0, 50]} is not class, queue, args, jid, or a path such as args.0.customer"
    end

    def path?(part)
      part.is_a?(String) && part.start_with?('args.') && part.split('.', -1).none?(&:empty?) && part.bytesize <= Wire::MAX_LIMIT_KEY
    end

    def check_time(name, seconds)
      number = seconds.respond_to?(:to_f) && !seconds.is_a?(String) ? Wire.number(seconds) : 0
      return number if number.positive? && number <= MOST_SECONDS

      raise ArgumentError, "unique: #{name} must be a number of seconds above 0, at most #{MOST_SECONDS}"
    end
  end

  # Which job stays of several with the same key. {Client#enqueue_unique} returns it.
  class Decision
    # @return [String] the jid of the job that stays
    attr_reader :jid

    # Returns the leader's decision about a job. Raises Refused if it has made none.
    # @private
    def self.by(reply, jid)
      stays = reply['jid'] || jid
      case reply['status']
      when 201 then new(stays)
      when 200 then new(reply['duplicate_of'] || stays, duplicate: true)
      else raise Refused, reply['reason'].to_s
      end
    end

    # @private
    def initialize(jid, duplicate: false)
      @jid = jid
      @duplicate = duplicate
    end

    # Returns whether the job that stays is another one than the one that was enqueued, which does not
    # run.
    # @return [Boolean]
    def duplicate?
      @duplicate
    end

    # @private
    def ==(other)
      other.is_a?(Decision) && [jid, duplicate?] == [other.jid, other.duplicate?]
    end
  end
end
