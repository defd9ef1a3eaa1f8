# frozen_string_literal: true

module Millrace
  # How long to wait between attempts: doubled each time, and not the same for everybody.
  # @private
  class Pauses
    LONGEST = 5.0

    def initialize(longest = LONGEST)
      @longest = longest
      @next = 0.05
    end

    # The next pause, in seconds.
    def next
      @next = [2 * @next, @longest].min
      @next * rand(0.5..1.0)
    end
  end
end
