# frozen_string_literal: true

# Run by internal/readmetest with a broker and a sidecar. It checks that a worker survives what its
# README says.

require 'timeout'
require 'millrace'

URL = ENV.fetch('MILLRACE_AMQP_URL')

def deeper
  deeper
end

ENDS = {
  'SystemExit' => -> { exit 3 },
  'Interrupt' => -> { raise Interrupt },
  'NoMemoryError' => -> { raise NoMemoryError },
  'SystemStackError' => -> { deeper },
  'UncaughtThrowError' => -> { throw :missing },
  'Exception' => -> { raise Exception, 'plain' }, # rubocop:disable Lint/RaiseException
  'Millrace::Connection::Lost' => -> { raise Millrace::Connection::Lost, 'not the worker\'s' },
  'ThreadEnded' => -> { Thread.exit }
}.freeze

# Writes headers that bunny can neither read nor write.
module Unsigned
  def encode(value)
    value == :unsigned ? "u\0\5".b : super
  end
end

# The worker may not have declared the queue yet.
def publish_unreadable
  AMQ::Protocol::TableValueEncoder.singleton_class.prepend(Unsigned)
  bunny = Bunny.new(URL).start
  channel = bunny.create_channel.tap(&:confirm_select)
  channel.queue('queue.ends', durable: true, arguments: { 'x-max-priority' => 10 })
  channel.basic_publish('{"class":"Plain","args":["unreadable headers"]}', '', 'queue.ends', headers: { 'n' => :unsigned })
  raise 'the broker refused the unreadable headers' unless channel.wait_for_confirms

  bunny.close
end

# Waits for a number of results, and returns those that came.
def some(queue, count)
  came = []
  Timeout.timeout(120) { count.times { came << queue.pop } }
  came
rescue Timeout::Error
  raise "only #{came} came"
end

worker = Millrace::Worker.new(URL, queues: %w[ends], concurrency: 2)
died = Thread::Queue.new
ran = Thread::Queue.new
ENDS.each { |name, ending| worker.handle(name) { ending.call } }
worker.handle('Plain') { |job| ran << job.args.first }
worker.on(:death) { |job, error| died << [job.job_class, error.respond_to?(:error_class) ? error.error_class : error.class.name] }
working = Thread.new { worker.run }

Millrace::Client.open(URL) do |client|
  2.times { client.enqueue_bulk(ENDS.keys.map { |name| Millrace::NewJob.new(name, [], queue: 'ends', retry: 0) }) }
  publish_unreadable
  client.enqueue('Plain', ['still alive'], queue: 'ends')
end

some(died, 2 * ENDS.size).each { |job_class, error| raise "#{job_class} died of #{error}" unless job_class == error }
ran = some(ran, 2)
raise "ran: #{ran}" unless ran.sort == ['still alive', 'unreadable headers']

worker.stop
working.join
puts 'survived'
