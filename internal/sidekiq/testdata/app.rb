# frozen_string_literal: true

# An application that uses Sidekiq, also with Active Job.
require 'sidekiq'
require_relative 'letter'

Sidekiq.logger.level = Logger::WARN
Sidekiq.configure_server do |config|
  config.redis = { url: ENV.fetch('REDIS_URL') }
  # Sidekiq looks for what is due every few seconds for each process. The tests cannot wait for that.
  config.respond_to?(:[]=) ? config[:average_scheduled_poll_interval] = 2 : config.average_scheduled_poll_interval = 2
end
Sidekiq.configure_client { |config| config.redis = { url: ENV.fetch('REDIS_URL') } }

ActiveJob::Base.queue_adapter = :sidekiq
ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper.sidekiq_retry_in { 1 }

class Old
  include Sidekiq::Worker
  sidekiq_options queue: 'legacy', retry: 5

  def perform(*args)
    raise "args changed: #{args.inspect}" unless args == [9_007_199_254_740_993, 'é']

    ran(jid, 'sidekiq')
  end
end

# Fails in its first attempt.
class Flaky
  include Sidekiq::Worker
  sidekiq_options queue: 'legacy', retry: 5
  sidekiq_retry_in { 1 }

  def perform(*)
    fail_first(jid)
    ran(jid, 'sidekiq')
  end
end

# Millrace's workers run it.
class New
  include Sidekiq::Worker
  sidekiq_options queue: 'mails'
end
