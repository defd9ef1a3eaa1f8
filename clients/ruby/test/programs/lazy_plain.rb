# frozen_string_literal: true

class TestWorker
  module Lazy
    # Not a handler.
    class Plain
      def perform = raise('never')
    end
  end
end
