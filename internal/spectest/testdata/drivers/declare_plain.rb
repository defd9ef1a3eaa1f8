# Declares a queue like the worker of section 4.3. The worker itself cannot show the answer: its
# threads share a connection, and bunny's reader dies when several channels are closed at the same
# time.
require 'bunny'

channel = Bunny.new(ENV.fetch('AMQP_URL')).tap(&:start).create_channel
queue_name = ARGV.fetch(0)
queue = channel.queue(queue_name, durable: true)
