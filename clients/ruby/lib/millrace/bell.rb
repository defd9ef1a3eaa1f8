# frozen_string_literal: true

module Millrace
  # Wakes threads that wait for something to become true.
  # @private
  class Bell
    def initialize
      @mutex = Mutex.new
      @rung = ConditionVariable.new
    end

    # Says that something has changed.
    def ring
      @mutex.synchronize { @rung.broadcast }
    end

    # Waits until the block is true, at most for some seconds, and tells whether it is.
    def wait(seconds = nil)
      deadline = Wire.ticks + seconds if seconds
      @mutex.synchronize do
        until (met = yield)
          left = deadline && (deadline - Wire.ticks)
          break if left && left <= 0

          @rung.wait(@mutex, left)
        end
        met ? true : false
      end
    end
  end
end
