# frozen_string_literal: true

module Millrace
  # A queue of which limits count all jobs, also plain jobs of other programs. {Client#define} takes
  # it.
  #
  # @example
  #   Millrace::GovernedQueue.new('imports', key: 'args.0.customer_id', max_waiting: 100_000, weights: { 'customer-42' => 3 })
  class GovernedQueue
    MOST = { max_waiting: 1_000_000_000, ahead: 1_000_000, weight: 1000 }.freeze
    MOST_WEIGHTS = 10_000
    private_constant :MOST, :MOST_WEIGHTS

    # @return [String]
    attr_reader :name

    # @param name [String] the queue
    # @param key [String, nil] the path to the key of a job, such as `args.0.customer_id` or `class`;
    #   keys take turns
    # @param max_waiting [Integer, nil] while so many jobs wait, more are refused ({Refused})
    # @param weights [Hash{String => Integer}, nil] by key, how many turns it has in a round; 1 for
    #   others
    # @param ahead [Integer, nil] how many jobs of the queue are delivered and have not ended at most;
    #   nil: twice as many as its workers run at once
    # @param paused [Boolean, nil] whether no job of the queue is delivered
    def initialize(name, key: nil, max_waiting: nil, weights: nil, ahead: nil, paused: nil)
      @name = name
      @members = { name: name, key: key, max_waiting: max_waiting, weights: weights, ahead: ahead, paused: paused }
    end

    # Returns the definition, without what is not set.
    # @return [Hash{String => Object}]
    # @raise [Invalid] if it breaks a rule
    def definition
      check
      Parse.object(Wire.dump(@members.compact))
    rescue ArgumentError => e
      raise Invalid, "governed queue #{name.inspect[0, 100]}: #{e.message}"
    end

    private

    def check
      Wire.check_queue(name)
      check_path(@members[:key])
      %i[max_waiting ahead].each { |member| check_number(member, @members[member], MOST[member]) unless @members[member].nil? }
      weights = @members[:weights] || {}
      raise ArgumentError, "there are #{weights.size} weights, at most #{MOST_WEIGHTS} are allowed" if weights.size > MOST_WEIGHTS

      weights.each { |key, weight| check_number("the weight of key #{key.inspect[0, 40]}", weight, MOST[:weight]) }
    end

    def check_path(path)
      return if path.nil? || (path.is_a?(String) && path.split('.', -1).none?(&:empty?) && path.bytesize <= Wire::MAX_LIMIT_KEY)

      raise ArgumentError, "key must be a path into the job, such as args.0.customer_id, of at most #{Wire::MAX_LIMIT_KEY} bytes"
    end

    def check_number(what, number, most)
      return if number.is_a?(Integer) && number.between?(1, most)

      raise ArgumentError, "#{what} must be a whole number from 1 to #{most}"
    end
  end
end
