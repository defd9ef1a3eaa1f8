# frozen_string_literal: true

module Millrace
  # A lane at work: its threads. It outlives connections: a job whose delivery is lost keeps its slot until it ends.
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

    # The lane's deliveries come from this attachment from now on.
    attr_reader :attachment

    def attachment=(attachment)
      @mutex.synchronize { @attachment = attachment }
    end

    # Says, while {#mutex} is held, that there is one more at hand.
    def arrived
      wake
    end

    # Lets the threads end that are idle, and the others when they are. They do not keep the process.
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

    # A handler may have ended its thread; another takes its place.
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

    # Wakes or starts one thread, and that one the next, if there is something for it: where jobs are quick, those that are awake do them
    # all, and nothing is spent on waking others for nothing.
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
