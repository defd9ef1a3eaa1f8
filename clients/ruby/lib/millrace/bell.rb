# frozen_string_literal: true

module Millrace
  # Wakes threads that wait until a condition is true.
  # @private
  class Bell
    def initialize
      @mutex = Mutex.new
      @rung = ConditionVariable.new
    end

    # Wakes the waiting threads, because something has changed.
    def ring
      @mutex.synchronize { @rung.broadcast }
    end

    # Waits until the block returns true, or until the seconds are over. Returns whether the block
    # returned true.
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
