# frozen_string_literal: true

module Millrace
  # A named pool of threads with its own queues, so that quick jobs never wait for slow ones.
  class Lane
    # How many jobs run concurrently by default.
    CONCURRENCY = 5

    # @return [String]
    attr_reader :name
    # @return [Array<String>]
    attr_reader :queues
    # @return [Array<Integer>, nil] the weights of the queues, or nil if they have none
    attr_reader :weights
    # @return [Integer]
    attr_reader :concurrency

    # @param name [String]
    # @param queues [Array<String>, Hash{String => Integer}] strict order: the first queue that has
    #   a job is served; or queues with their weights
    # @param concurrency [Integer] how many jobs run concurrently
    def initialize(name, queues, concurrency: CONCURRENCY)
      @name = name.to_s
      @weights = queues.values if queues.is_a?(Hash)
      @queues = queues.is_a?(Hash) ? queues.keys : queues
      @concurrency = concurrency
      check
      @queues = @queues.map(&:to_s)
    end

    # Returns all lanes of a worker, the default one first.
    # @private
    def self.all(queues, concurrency, lanes)
      all = lanes.dup
      all.unshift(new('default', queues || [Wire::DEFAULT_QUEUE], concurrency: concurrency)) if queues || lanes.empty?
      raise ArgumentError, 'two lanes have one name' unless all.map(&:name).uniq.size == all.size

      all
    end

    # Returns how many unacknowledged deliveries the broker sends for each queue. For one queue it
    # is the concurrency. For several queues it is twice that. Otherwise, when a thread is free, the
    # next job of the first queue would still be on its way, and a job of another queue would begin.
    # @private
    def prefetch
      @queues.size == 1 ? @concurrency : 2 * @concurrency
    end

    private

    def check
      check_queues
      raise ArgumentError, "lane #{name}: weights must be 1 or more" unless (@weights || []).all? { |w| w.is_a?(Integer) && w >= 1 }
      raise ArgumentError, "lane #{name}: concurrency is #{@concurrency}" unless @concurrency.is_a?(Integer) && @concurrency >= 1
    end

    def check_queues
      unless @queues.is_a?(Array) && !@queues.empty? && @queues.uniq.size == @queues.size
        raise ArgumentError, "lane #{name}: queues must be an array, or a hash, of different names, and not empty"
      end

      @queues.each { |queue| Wire.check_queue(queue.to_s) }
    end
  end
end
