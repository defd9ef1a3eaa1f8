# frozen_string_literal: true

module Millrace
  # A lane at work: its threads. It outlives connections: a job whose delivery is lost keeps its slot until it ends.
  # @private
  class Pool
    attr_reader :lane, :busy

    def initialize(worker, lane)
      @worker = worker
      @lane = lane
      @mutex = Mutex.new
      @more = ConditionVariable.new
      @busy = 0
      @idle = 0
      @threads = 0
      @closed = false
    end

    # The lane's deliveries come from this attachment from now on.
    attr_reader :attachment

    def attachment=(attachment)
      @mutex.synchronize { @attachment = attachment }
    end

    def synchronize(&block)
      @mutex.synchronize(&block)
    end

    # Says, in {#synchronize}, that there is one more at hand.
    def arrived
      @more.signal
      spawn if @attachment.hand.count > @idle && @threads < lane.concurrency
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
      while (task = take)
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
        spawn if !@closed && @attachment&.hand&.count&.positive?
      end
    end

    def take
      @mutex.synchronize do
        until @closed
          return begin_one if ready?

          @idle += 1
          begin
            @more.wait(@mutex)
          ensure
            @idle -= 1
          end
        end
      end
    end

    def ready?
      @attachment && @attachment.hand.count.positive? && !@worker.quiet? && !@attachment.lost?
    end

    def begin_one
      queue, arrival = @attachment.hand.take
      @busy += 1
      Task.new(@worker, @attachment, lane.queues[queue], arrival)
    end
  end
end
