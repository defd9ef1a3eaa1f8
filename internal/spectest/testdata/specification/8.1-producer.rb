require 'bunny'

class JobClient
  def self.connection
    @connection ||= Bunny.new('amqp://localhost').tap(&:start)
  end

  def self.enqueue(job_class, args, queue: 'default', retry: 25)
    channel = connection.create_channel
    job = {
      jid: SecureRandom.hex(12),
      class: job_class,
      args: args,
      queue: queue,
      retry: retry,
      retry_count: 0,
      enqueued_at: Time.now.to_f
    }

    channel.default_exchange.publish(
      job.to_json,
      routing_key: queue,
      persistent: true
    )
  end
end

# New usage
JobClient.enqueue('SendEmailJob', ['user@example.com', 'Hello'], queue: 'critical', retry: 10)
