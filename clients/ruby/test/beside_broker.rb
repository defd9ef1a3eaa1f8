# frozen_string_literal: true

require_relative 'private_broker'

# Helpers of tests with a real broker. There is no sidecar: queues stand for its streams.
module BesideBroker
  include Millrace

  def setup
    port = PrivateBroker.port or skip 'RabbitMQ is not installed'
    @url = "amqp://guest:guest@127.0.0.1:#{port}/"
    @bunny = Bunny.new("#{@url}%2F", logger: Logger.new(nil)).start
    @channel = @bunny.create_channel
    @channel.direct('jobs.direct', durable: true)
    @queue = "test-#{SecureRandom.hex(4)}"
    @jobs = queue("queue.#{@queue}").bind('jobs.direct', routing_key: @queue)
    @sets = %w[scheduled_jobs retries dead_jobs].to_h { |name| [name, queue(name).tap(&:purge)] }
  end

  def teardown
    @network&.close
    @client&.close
    @bunny&.close
  end

  def queue(name)
    @channel.queue(name, durable: true)
  end

  def client(url = @url, **options)
    @client = Client.new(url, **options)
  end

  # Returns a client whose network the test controls.
  def watched_client
    @network&.close
    @network = PrivateBroker::Network.new(URI(@url).port)
    client("amqp://guest:guest@127.0.0.1:#{@network.port}")
  end

  # Returns a client whose answers can be held back.
  def slow_client
    watched_client.tap { |made| made.enqueue('First', [], queue: @queue) }
  end

  # Takes commands as a leader does. The replies are given in order; nil is no answer. The block gets
  # the commands.
  def leading(*replies, inbox: 'jobs.leader')
    commands = []
    inbox = queue(inbox)
    inbox.subscribe do |_, properties, body|
      commands << JSON.parse(body)
      reply = replies.shift
      address = { routing_key: properties.reply_to, correlation_id: properties.correlation_id }
      @channel.default_exchange.publish(JSON.generate(reply), address) if reply
    end
    yield commands
  ensure
    inbox.delete
  end

  def eventually(what)
    deadline = Wire.ticks + 60
    until yield
      flunk "not within a minute: #{what}" if Wire.ticks > deadline
      sleep 0.02
    end
  end

  # Takes a message from a queue of the program, once there is one. Thread::Queue#pop would wait for
  # ever.
  def pop(queue)
    eventually('something comes') { !queue.empty? }
    queue.pop
  end

  # Returns the messages of a queue, once there are as many.
  def messages(queue, count)
    eventually("#{count} messages in #{queue.name}") { queue.message_count == count }
    Array.new(count) { queue.pop }
  end

  # Runs a worker, and returns its log.
  def working(**options)
    log = StringIO.new
    logger = Logger.new(log, formatter: ->(severity, _time, _name, line) { "#{severity} #{line}\n" })
    worker = Worker.new(@url, queues: [@queue], concurrency: 2, logger: logger, **options)
    yield worker, log
    log.string
  ensure
    worker&.stop
    @working&.join
  end

  def start(worker)
    @working = Thread.new { worker.run }
  end
end
