# Declares a queue as section 4.3's worker does. The worker itself is no good to see the answer with: its
# threads share a connection, and bunny's reader dies when several channels are closed at a time.
require 'bunny'

channel = Bunny.new(ENV.fetch('AMQP_URL')).tap(&:start).create_channel
queue_name = ARGV.fetch(0)
queue = channel.queue(queue_name, durable: true)
