# frozen_string_literal: true

module Millrace
  # How many limited jobs may run at the same time, and how many may begin in a time. {Client#define}
  # takes it.
  #
  # @example
  #   Millrace::Limit.new('imports', classes: ['Import'], per: [:key], concurrency: 3, rate: { jobs: 100, seconds: 60 })
  class Limit
    # @return [String]
    attr_reader :name

    # @param name [String] 1 to 64 letters, digits, dots, hyphens and underscores
    # @param queues [Array<String>, nil] whose jobs it counts; nil: all
    # @param classes [Array<String, Class>, nil] whose jobs it counts; nil: all
    # @param per [Array<Symbol>, nil] some of `:queue`, `:class` and `:key`: each of them has the
    #   limit for itself
    # @param concurrency [Integer, nil] how many jobs may run at the same time
    # @param rate [Hash{Symbol => Numeric}, nil] `jobs` that may begin in so many `seconds`, and
    #   `burst`, how many of them may begin together after a pause
    # @param overrides [Hash{String => Hash}, nil] `concurrency` and `rate` of single keys; `per` must
    #   have `:key`
    # @param paused [Boolean, nil] whether no job that it counts begins
    def initialize(name, queues: nil, classes: nil, per: nil, concurrency: nil, rate: nil, overrides: nil, paused: nil)
      @name = name
      @members = { name: name, queues: queues, classes: classes&.map { |found| found.is_a?(Module) ? Handler.name_of(found) : found },
                   per: per, concurrency: concurrency, rate: rate, overrides: overrides, paused: paused }
    end

    # Returns the definition, without what is not set. The leader checks it.
    # @return [Hash{String => Object}]
    # @raise [Invalid] if JSON does not have a value
    def definition
      Parse.object(Wire.dump(@members.compact))
    rescue ArgumentError => e
      raise Invalid, "limit #{name.inspect[0, 100]}: #{e.message}"
    end
  end
end
