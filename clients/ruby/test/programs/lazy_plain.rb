# frozen_string_literal: true

class TestWorker
  module Lazy
    # No handler.
    class Plain
      def perform = raise('never')
    end
  end
end
