# frozen_string_literal: true

module Millrace
  # The threads of a lane. It outlives connections: a job whose delivery is lost keeps its thread
  # until it ends.
  # @private
  class Pool
    attr_reader :lane, :busy, :mutex

    def initialize(worker, lane)
      @worker = worker
      @lane = lane
      @mutex = Mutex.new
      @more = ConditionVariable.new
      @busy = 0
      @idle = 0
      @threads = 0
      @closed = @waking = false
    end

    # The attachment from which the lane's deliveries come.
    attr_reader :attachment

    def attachment=(attachment)
      @mutex.synchronize { @attachment = attachment }
    end

    # Called with {#mutex} held, when a delivery was added to the hand.
    def arrived
      wake
    end

    # Ends idle threads now, and busy threads when their jobs end. They do not keep the process
    # alive.
    def close
      @mutex.synchronize do
        @closed = true
        @more.broadcast
      end
    end

    private

    def spawn
      @threads += 1
      thread = Thread.new { work }
      thread.name = "millrace #{lane.name}"
      thread.report_on_exception = false
    end

    def work
      fresh = true
      while (task = take(fresh))
        fresh = false
        begin
          task.work
        ensure
          @mutex.synchronize { @busy -= 1 }
        end
      end
    ensure
      ended
    end

    # A handler may have ended its thread. Then another thread takes its place.
    def ended
      @mutex.synchronize do
        @threads -= 1
        wake if ready?
      end
    end

    def take(fresh)
      @mutex.synchronize do
        @waking = false if fresh
        until @closed
          return begin_one if ready?

          rest
        end
      end
    end

    def rest
      @idle += 1
      @more.wait(@mutex)
    ensure
      @idle -= 1
      @waking = false
    end

    # Wakes or starts one thread. That thread wakes the next if there are more deliveries. So if
    # jobs are quick, the threads that are awake run them all, and no time is spent on waking
    # others.
    def wake
      return if @waking || (@idle.zero? && @threads >= lane.concurrency)

      @waking = true
      @idle.zero? ? spawn : @more.signal
    end

    def ready?
      @attachment && @attachment.hand.count.positive? && !@worker.quiet? && !@attachment.lost?
    end

    def begin_one
      queue, arrival = @attachment.hand.take
      @busy += 1
      wake if @attachment.hand.count.positive?
      Task.new(@worker, @attachment, lane.queues[queue], arrival)
    end
  end
end
