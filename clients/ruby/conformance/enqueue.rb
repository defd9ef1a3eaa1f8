# frozen_string_literal: true

# Enqueues jobs with the Ruby client and with bunny alone, for the benchmark of enqueueing.

require 'bunny'
require 'json'
require 'millrace'

SETTINGS = JSON.parse(ENV.fetch('MILLRACE_ENQUEUE'))
QUEUE, JOBS, AT_ONCE = SETTINGS.values_at('queue', 'jobs', 'at_once')

def publish(exchange, number)
  now = Time.now
  jid = format('%032x', number)
  body = %({"jid":"#{jid}","class":"Noop","args":[#{number},"some text"],"queue":"#{QUEUE}",) +
         %("created_at":#{now.to_f},"enqueued_at":#{now.to_f},"retry":25})
  exchange.publish(body, routing_key: QUEUE, mandatory: true, persistent: true, content_type: 'application/json',
                         message_id: jid, type: 'Noop', timestamp: now.to_i)
end

def bare(exchange)
  JOBS.times do |number|
    publish(exchange, number)
    exchange.channel.wait_for_confirms
  end
end

def bare_bulk(exchange)
  (0...JOBS).each_slice(AT_ONCE) do |numbers|
    numbers.each { |number| publish(exchange, number) }
    exchange.channel.wait_for_confirms
  end
end

def single(client)
  JOBS.times { |number| client.enqueue('Noop', [number, 'some text'], queue: QUEUE) }
end

def bulk(client)
  (0...JOBS).each_slice(AT_ONCE) do |numbers|
    client.enqueue_bulk(numbers.map { |number| Millrace::NewJob.new('Noop', [number, 'some text'], queue: QUEUE) })
  end
end

def timed
  begun = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  yield
  Process.clock_gettime(Process::CLOCK_MONOTONIC) - begun
end

connection = Bunny.new(ENV.fetch('MILLRACE_AMQP_URL'))
connection.start
channel = connection.create_channel
channel.confirm_select
exchange = channel.exchange('jobs.direct', passive: true)
$stdout.sync = true
Millrace::Client.open(ENV.fetch('MILLRACE_AMQP_URL')) do |client|
  SETTINGS['rounds'].times do
    one = { bare: timed { bare(exchange) }, library: timed { single(client) } }
    many = { bare: timed { bare_bulk(exchange) }, library: timed { bulk(client) } }
    puts JSON.generate({ single: one, bulk: many })
  end
end
connection.close
