# frozen_string_literal: true

module Millrace
  # A lane's waiting deliveries, by queue. It is not thread-safe: {Pool} holds the lock.
  # @private
  class Hand
    # A delivery that has not begun.
    class Arrival
      attr_reader :tag, :redelivered, :properties, :body, :at, :priority

      def initialize(tag, redelivered, properties, body)
        @tag = tag
        @redelivered = redelivered
        @properties = properties
        @body = body
        @priority = properties[:priority] || 0
        @at = Wire.ticks
      end
    end

    attr_reader :count

    def initialize(lane)
      @weights = lane.weights
      @waiting = lane.queues.map { [] }
      @count = 0
    end

    # Adds an arrival behind all of the same or a higher priority.
    def put(queue, arrival)
      waiting = @waiting[queue]
      at = waiting.size
      at -= 1 while at.positive? && waiting[at - 1].priority < arrival.priority
      waiting.insert(at, arrival)
      @count += 1
    end

    # Removes the next delivery to begin: from the first queue that has one, or from a queue that is
    # drawn by weight.
    def take(random = Random)
      queue = @weights ? draw(random) : @waiting.index { |waiting| !waiting.empty? }
      @count -= 1
      [queue, @waiting[queue].shift]
    end

    # Removes and returns all deliveries of a queue.
    def empty(queue)
      taken = @waiting[queue]
      @waiting[queue] = []
      @count -= taken.size
      taken
    end

    # Returns when the oldest delivery of a queue arrived, or nil if the queue has none.
    def waits_since(queue)
      @waiting[queue].map(&:at).min
    end

    private

    def draw(random)
      having = @waiting.each_index.reject { |queue| @waiting[queue].empty? }
      drawn = random.rand(having.sum { |queue| @weights[queue] })
      having.find { |queue| (drawn -= @weights[queue]).negative? }
    end
  end
end
