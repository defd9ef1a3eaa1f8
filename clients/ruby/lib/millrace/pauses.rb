# frozen_string_literal: true

module Millrace
  # The pauses between attempts. Each is twice the one before, with a random factor, so that clients
  # do not try at the same time.
  # @private
  class Pauses
    LONGEST = 5.0

    def initialize(longest = LONGEST)
      @longest = longest
      @next = 0.05
    end

    # Returns the next pause, in seconds.
    def next
      @next = [2 * @next, @longest].min
      @next * rand(0.5..1.0)
    end
  end
end
