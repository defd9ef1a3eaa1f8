# frozen_string_literal: true

# Enqueues JOBS letters for Sidekiq's workers with Millrace's adapter for Active Job, and prints their
# jids.
require_relative 'millrace'

Integer(ENV.fetch('JOBS')).times do |n|
  letter = n.even? ? Letter : FlakyLetter
  puts letter.set(queue: 'legacy', wait: n % 3).perform_later(*Letter::ARGS).provider_job_id
end
