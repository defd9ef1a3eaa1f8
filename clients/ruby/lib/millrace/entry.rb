# frozen_string_literal: true

module Millrace
  # How a worker runs the jobs of a class.
  # @private
  Entry = Struct.new(:call, :retry_in, :timeout, :place) do
    def run(job)
      call.call(job)
    end

    # Returns the file and line of the handler.
    def where
      (place || ['?']).join(':')
    end
  end
end
