# frozen_string_literal: true

# The loop to which the Ruby client is compared: bunny alone.

require 'bunny'
require 'json'

settings = JSON.parse(ENV.fetch('MILLRACE_WORKER'))
connection = Bunny.new(ENV.fetch('MILLRACE_AMQP_URL'))
connection.start
channel = connection.create_channel
channel.prefetch(settings['concurrency'])
queue = channel.queue("queue.#{settings['queues'].first}", durable: true, arguments: { 'x-max-priority' => 10 })
queue.subscribe(manual_ack: true) { |delivery_info, _properties, _body| channel.ack(delivery_info.delivery_tag) }
begin
  sleep
rescue SignalException
  exit 0
end
