# frozen_string_literal: true

# Enqueues JOBS jobs with Sidekiq's client, spread over the places that it has, and prints their jids.
require_relative 'app'
require 'sidekiq/api'

Integer(ENV.fetch('JOBS')).times do |n|
  args = [9_007_199_254_740_993, 'é']
  jid = case n % 6
        when 0, 1 then New.perform_async(*args)
        when 2 then Old.perform_async(*args)
        when 3 then Flaky.perform_async(n)
        when 4 then New.perform_in(1 + (n % 20), *args)
        else Old.perform_in(1 + (n % 20), *args)
        end
  puts "#{jid} #{n % 6}"
end
dead = { 'class' => 'New', 'args' => [1], 'queue' => 'mails', 'jid' => 'dead1', 'retry' => true, 'retry_count' => 25,
         'error_class' => 'RuntimeError', 'error_message' => 'late', 'failed_at' => Time.now.to_f, 'created_at' => Time.now.to_f }
Sidekiq::DeadSet.new.kill(Sidekiq.dump_json(dead))
