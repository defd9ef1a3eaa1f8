# frozen_string_literal: true

module Millrace
  # A lane on one channel: it consumes, and what arrives waits in its hand for a thread of the lane.
  # @private
  class Attachment
    # How long a delivery waits at hand before others may have it.
    PATIENCE = 5.0
    # How often it is looked whether the channel was closed, of which bunny tells nobody.
    LOOK = 0.5
    # How long until a queue that is missing is looked for again.
    AGAIN = 1

    attr_reader :session, :pool, :channel, :hand

    def initialize(session, pool)
      @session = session
      @worker = session.worker
      @pool = pool
      @queues = pool.lane.queues
      @tags = Array.new(@queues.size) # of consumers, by queue
      @resting = Array.new(@queues.size, false) # given back for others, until a slot is idle
      @missing = {} # by queue: when to look for it again
      @hand = Hand.new(pool.lane)
      @withdrawn = Thread::Queue.new
      @channel = session.connection.channel
    end

    # Consumes until the channel is lost, or the session is over.
    def run
      @channel.qos(@pool.lane.prefetch)
      @pool.attachment = self
      until @channel.closed? || @cancelled || @session.over?
        adjust
        @worker.bell.wait(LOOK) { @changed || @cancelled || @session.over? }
        @changed = false
        share
      end
    end

    # Something was paused or resumed, or the worker is quiet: what must not begin any more is handed back at once.
    def changed
      withdraw
      @changed = true
    end

    def lost?
      @channel.closed?
    end

    private

    def wanted?(queue)
      !(@worker.quiet? || @resting[queue] || @worker.paused.include?(@queues[queue]))
    end

    # Takes out what is not to be consumed, and gives the tags of its consumers.
    def withdraw
      tags, arrivals = @pool.mutex.synchronize do
        unwanted = @tags.each_index.reject { |queue| wanted?(queue) }
        [unwanted.map { |queue| @tags[queue].tap { @tags[queue] = nil } }, unwanted.flat_map { |queue| @hand.empty(queue) }]
      end
      arrivals.each { |arrival| @channel.requeue(arrival.tag) }
      tags.compact.each { |tag| @withdrawn << tag }
    end

    # Consumes what is to be consumed, and cancels what is not. Only in the lane's own thread: it waits for the broker.
    def adjust
      withdraw
      @channel.cancel(@withdrawn.pop) until @withdrawn.empty?
      @queues.each_with_index do |name, queue|
        next if @tags[queue] || !wanted?(queue) || Wire.ticks < @missing.fetch(queue, 0)

        found?(queue, name) && wanted?(queue) && consume(queue, name)
      end
    end

    # Reports whether a queue exists. A missing one is looked for again a second later.
    def found?(queue, name)
      return @missing.delete(queue) || true if @session.ensure_queue(name)

      @worker.log.warn("queue #{name} does not exist yet") unless @missing.key?(queue)
      @missing[queue] = Wire.ticks + AGAIN
      false
    end

    def consume(queue, name)
      tag = @session.next_tag
      @pool.mutex.synchronize { @tags[queue] = tag }
      on_message = ->(number, redelivered, properties, body) { arrive(queue, tag, number, redelivered, properties, body) }
      @channel.consume(Wire::QUEUE_PREFIX + name, tag, on_message, on_cancel: -> { cancelled })
    end

    # Called by bunny's reader, which must not wait.
    def arrive(queue, tag, *delivery)
      arrival = Hand::Arrival.new(*delivery)
      taken = @pool.mutex.synchronize do
        next false unless @tags[queue] == tag

        @hand.put(queue, arrival)
        @pool.arrived
        true
      end
      @channel.requeue(arrival.tag) unless taken # it was on its way when its consumer was cancelled
    end

    def cancelled
      @cancelled = true
      @worker.bell.ring
    end

    # Gives back what waits for long because the lane is busy with other queues, and takes it up again when it is idle.
    def share
      return if @queues.size == 1

      @pool.mutex.synchronize do
        idle = @hand.count.zero? && @pool.busy < @pool.lane.concurrency
        @queues.each_index do |queue|
          since = @hand.waits_since(queue)
          @resting[queue] = idle ? false : @resting[queue] || (!since.nil? && Wire.ticks - since > PATIENCE)
        end
      end
    end
  end
end
