# frozen_string_literal: true

# A program that was written for Sidekiq. Only the line with `require` is new.

require 'millrace/sidekiq'

$stdout.sync = true

# Fails.
class Ported
  include Sidekiq::Job
  sidekiq_options retry: 0
  sidekiq_retries_exhausted { |job, error| puts "exhausted #{job['args'].first} #{error.message}" }

  def perform(name)
    puts "perform #{name} #{interrupted?}"
    raise KeyError, 'no such order'
  end
end

# Prints the class of each job.
class Printing
  include Sidekiq::ServerMiddleware

  def call(one, item, _queue)
    puts "middleware #{one.class} #{item['class']}"
    yield
  end
end

Sidekiq.configure_client { puts 'client' }

Sidekiq.configure_server do |config|
  config.redis = { url: ENV.fetch('REDIS_URL', nil) }
  config.server_middleware { |chain| chain.add(Printing) }
  config.on(:startup) { puts 'startup' }
  config.death_handlers << ->(job, _error) { puts "dead #{job['class']}" }
end
