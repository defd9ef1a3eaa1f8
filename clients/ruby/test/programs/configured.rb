# frozen_string_literal: true

# Configures the worker of the command `millrace-worker`, in two steps.

$stdout.sync = true

# Fails.
class Configured
  include Millrace::Handler

  def perform
    puts 'perform'
    raise KeyError, 'no such order'
  end
end

Millrace.configure_worker do |worker|
  worker.use do |_job, next_one|
    puts 'first'
    next_one.call
  end
end

Millrace.configure_worker do |worker|
  worker.use do |_job, next_one|
    puts 'second'
    next_one.call
  end
  worker.on(:failure) { |_job, error| puts "failure #{error.class}" }
end
