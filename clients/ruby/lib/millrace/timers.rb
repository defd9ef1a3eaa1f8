# frozen_string_literal: true

module Millrace
  # Ends jobs whose timeout is over. Its thread starts with the first job that has a timeout.
  # @private
  class Timers
    def initialize
      @mutex = Mutex.new
      @changed = ConditionVariable.new
      @deadlines = {}.compare_by_identity
    end

    # Calls the block, and sets the task's cancel signal if that takes longer than some seconds.
    def limit(task, seconds)
      deadline = Wire.ticks + seconds
      @mutex.synchronize do
        @thread ||= Thread.new { run }
        @deadlines[task] = deadline
        @changed.signal
      end
      yield
    ensure
      @mutex.synchronize { @deadlines.delete(task) }
    end

    # Ends the thread.
    def close
      @thread&.kill
    end

    private

    def run
      loop do
        late = @mutex.synchronize do
          wait
          now = Wire.ticks
          over = @deadlines.keys.select { |task| @deadlines[task] <= now }
          over.each { |task| @deadlines.delete(task) }
        end
        late.each { |task| task.end(:timeout) }
      end
    end

    def wait
      first = @deadlines.each_value.min
      left = first && (first - Wire.ticks)
      @changed.wait(@mutex, left) if left.nil? || left.positive?
    end
  end
end
