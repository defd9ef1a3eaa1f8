# frozen_string_literal: true

module Millrace
  # A lane on one channel. It consumes the lane's queues. Deliveries wait in its hand for a thread
  # of the lane.
  # @private
  class Attachment
    # How many seconds a delivery may wait while the lane is busy with other queues.
    PATIENCE = 5.0
    # How many seconds pass between checks whether the channel is closed. Bunny does not report
    # that.
    LOOK = 0.5
    # How many seconds pass between checks for a missing queue.
    AGAIN = 1

    attr_reader :session, :pool, :channel, :hand

    def initialize(session, pool)
      @session = session
      @worker = session.worker
      @pool = pool
      @queues = pool.lane.queues
      @tags = Array.new(@queues.size) # of consumers, by queue
      # The queues that were given back, until a thread is idle.
      @resting = Array.new(@queues.size, false)
      @missing = {} # when to check again for a missing queue, by queue
      @hand = Hand.new(pool.lane)
      @withdrawn = Thread::Queue.new
      @channel = session.connection.channel
    end

    # Consumes until the channel is lost or the session is over.
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

    # Reacts when a queue was paused or resumed, or the worker became quiet. Requeues immediately
    # the deliveries that must not begin any more.
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

    # Takes the deliveries of unwanted queues out of the hand, and requeues them. Collects the tags
    # of the consumers to cancel.
    def withdraw
      tags, arrivals = @pool.mutex.synchronize do
        unwanted = @tags.each_index.reject { |queue| wanted?(queue) }
        [unwanted.map { |queue| @tags[queue].tap { @tags[queue] = nil } }, unwanted.flat_map { |queue| @hand.empty(queue) }]
      end
      arrivals.each { |arrival| @channel.requeue(arrival.tag) }
      tags.compact.each { |tag| @withdrawn << tag }
    end

    # Starts the consumers that are wanted, and cancels the others. Called only in the lane's own
    # thread, because it waits for the broker.
    def adjust
      withdraw
      @channel.cancel(@withdrawn.pop) until @withdrawn.empty?
      @queues.each_with_index do |name, queue|
        next if @tags[queue] || !wanted?(queue) || Wire.ticks < @missing.fetch(queue, 0)

        found?(queue, name) && wanted?(queue) && consume(queue, name)
      end
    end

    # Returns whether a queue exists. After a second it checks again for a missing one.
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

    # Called by bunny's reader thread, so it must not wait.
    def arrive(queue, tag, *delivery)
      arrival = Hand::Arrival.new(*delivery)
      taken = @pool.mutex.synchronize do
        next false unless @tags[queue] == tag

        @hand.put(queue, arrival)
        @pool.arrived
        true
      end
      # The delivery was on its way when its consumer was cancelled.
      @channel.requeue(arrival.tag) unless taken
    end

    def cancelled
      @cancelled = true
      @worker.bell.ring
    end

    # Gives back the deliveries of a queue that wait too long because the lane is busy with other
    # queues. Consumes such queues again when the lane has an idle thread.
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
