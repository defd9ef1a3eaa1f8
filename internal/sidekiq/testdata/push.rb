# frozen_string_literal: true

# Enqueues JOBS jobs with Sidekiq's client and with Active Job, spread over the places that Sidekiq has.
# Prints the jid of each, and the side on which it must run.
require_relative 'app'
require 'sidekiq/api'

def post(letter, **options)
  letter.set(**options).perform_later(*Letter::ARGS).provider_job_id
end

Integer(ENV.fetch('JOBS')).times do |n|
  args = [9_007_199_254_740_993, 'é']
  jid, side =
    case n % 9
    when 0, 1 then [New.perform_async(*args), 'millrace']
    when 2 then [Old.perform_async(*args), 'sidekiq']
    when 3 then [Flaky.perform_async(n), 'sidekiq']
    when 4 then [New.perform_in(1 + (n % 20), *args), 'millrace']
    when 5 then [Old.perform_in(1 + (n % 20), *args), 'sidekiq']
    when 6 then [post(Letter, queue: 'letters'), 'millrace']
    when 7 then [post(Letter, queue: 'letters', wait: 1 + (n % 20)), 'millrace']
    else [post(FlakyLetter, queue: 'legacy'), 'sidekiq']
    end
  puts "#{jid} #{side}"
end
dead = { 'class' => 'New', 'args' => [1], 'queue' => 'mails', 'jid' => 'dead1', 'retry' => true, 'retry_count' => 25,
         'error_class' => 'RuntimeError', 'error_message' => 'late', 'failed_at' => Time.now.to_f, 'created_at' => Time.now.to_f }
Sidekiq::DeadSet.new.kill(Sidekiq.dump_json(dead))
