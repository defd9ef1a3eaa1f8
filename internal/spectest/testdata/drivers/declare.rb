# Declares the topology of section 2.3 of the specification, and the given queues:
# declare.rb queue.x ...
require 'bunny'

connection = Bunny.new(ENV.fetch('AMQP_URL')).tap(&:start)
channel = connection.create_channel
channel.exchange('jobs.direct', type: :direct, durable: true)
channel.exchange('jobs.dead', type: :fanout, durable: true)
ARGV.each do |queue|
  channel.queue(queue, durable: true, arguments: { 'x-max-priority' => 10 })
end
%w[scheduled_jobs retries dead_jobs heartbeats job_metrics].each do |stream|
  channel.queue(stream, durable: true, arguments: { 'x-queue-type' => 'stream' })
end
connection.close
puts 'declared'
