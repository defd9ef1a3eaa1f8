# frozen_string_literal: true

module Millrace
  # What a lane has at hand, by queue. It is not safe to use from several threads: {Pool} has the lock.
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

    # Adds an arrival behind those of its priority.
    def put(queue, arrival)
      waiting = @waiting[queue]
      at = waiting.size
      at -= 1 while at.positive? && waiting[at - 1].priority < arrival.priority
      waiting.insert(at, arrival)
      @count += 1
    end

    # Removes what is to begin next: of the first queue that has something, or of one drawn by weight.
    def take(random = Random)
      queue = @weights ? draw(random) : @waiting.index { |waiting| !waiting.empty? }
      @count -= 1
      [queue, @waiting[queue].shift]
    end

    # Removes all of one queue.
    def empty(queue)
      taken = @waiting[queue]
      @waiting[queue] = []
      @count -= taken.size
      taken
    end

    # When the longest waiting of a queue arrived; nil, if there is none.
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
