# frozen_string_literal: true

# Sets options of the worker of the command `millrace-worker`.

$stdout.sync = true

Millrace.worker_options = {
  credentials: -> { %w[guest guest] },
  lanes: [Millrace::Lane.new('slow', [ENV.fetch('SLOW_QUEUE')], concurrency: 1)]
}

# Runs in the lane.
class Slow
  include Millrace::Handler

  def perform
    puts "perform in #{job.queue}"
  end
end
