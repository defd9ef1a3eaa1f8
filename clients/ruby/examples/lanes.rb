# frozen_string_literal: true

# Separate lanes for quick and slow jobs, weighted queues, a backoff of its own, and jobs that
# notice when the worker stops. Run it with
#
#     ruby examples/lanes.rb

require 'millrace'

worker = Millrace::Worker.new(
  ENV.fetch('MILLRACE_AMQP_URL', 'amqp://localhost'),
  lanes: [
    Millrace::Lane.new('quick', { 'critical' => 3, 'mail' => 1 }, concurrency: 20),
    Millrace::Lane.new('slow', ['reports'], concurrency: 2)
  ],
  tag: 'examples'
)

worker.use do |job, next_one|
  Millrace.logger.info("#{job.job_class} #{job.jid} begins, attempt #{job.attempt}")
  next_one.call
end

# Works for long, in steps.
worker.handle('Report', timeout: 600) do |job|
  100.times do |page|
    raise Millrace::HandBack if job.wait(1) # stands for a second's work

    Millrace.logger.info("page #{page}")
  end
end

# Fails in several ways.
worker.handle('Charge', retry_in: ->(count, _error, _job) { 60 * (count + 1) }) do |job|
  customer, amount = job.args
  raise Millrace::Discard, 'nothing to pay' unless amount.positive?
  raise Millrace::RetryIn.new(5, 'the bank is busy') if customer == 'busy'
  raise Millrace::Kill, 'no such customer' if customer.empty?
end

worker.on(:death) { |job, error| Millrace.logger.error("#{job.job_class} #{job.jid} was given up: #{error.message}") }

worker.run(signals: true) if $PROGRAM_NAME == __FILE__
