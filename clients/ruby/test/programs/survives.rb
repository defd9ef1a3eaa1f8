# frozen_string_literal: true

# Run beside a broker and a sidecar by internal/readmetest: holds the worker to what its README says that it survives.

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
  'UncaughtThrowError' => -> { throw :nobody },
  'Exception' => -> { raise Exception, 'plain' }, # rubocop:disable Lint/RaiseException
  'Millrace::Connection::Lost' => -> { raise Millrace::Connection::Lost, 'not the worker\'s' },
  'ThreadEnded' => -> { Thread.exit }
}.freeze

# Headers that bunny does not read, and does not write either.
module Unsigned
  def encode(value)
    value == :unsigned ? "u\0\5".b : super
  end
end

def publish_unreadable
  AMQ::Protocol::TableValueEncoder.singleton_class.prepend(Unsigned)
  bunny = Bunny.new(URL).start
  body = '{"class":"Plain","args":["unreadable headers"]}'
  bunny.create_channel.basic_publish(body, '', 'queue.ends', headers: { 'n' => :unsigned })
  bunny.close
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
(2 * ENDS.size).times { died.pop.then { |job_class, error| raise "#{job_class} died of #{error}" unless job_class == error } }
ran = [ran.pop, ran.pop]
raise "ran: #{ran}" unless ran.sort == ['still alive', 'unreadable headers']

worker.stop
working.join
puts 'survived'
