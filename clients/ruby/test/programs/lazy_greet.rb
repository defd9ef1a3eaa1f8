# frozen_string_literal: true

class TestWorker
  module Lazy
    # Loaded by its name.
    class Greet
      include Millrace::Handler
      millrace_options timeout: 7

      def perform; end
    end
  end
end
