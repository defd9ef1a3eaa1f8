# frozen_string_literal: true

module Millrace
  # A channel, until it is closed. What is written on a closed one is lost, and nobody is told: the broker has what was not acknowledged.
  # @private
  class Channel
    # Has bunny hand deliveries over in its reader thread: whoever consumes only puts them somewhere.
    class AtOnce < Bunny::ConsumerWorkPool
      # @private
      def submit(callable = nil, &block)
        (callable || block).call
      end

      # @private
      def start
        @running = true
      end

      # @private
      def shutdown(*)
        @running = false
      end
      alias kill shutdown
    end

    # Bunny's channel, which hands deliveries over as they are: what it would make of each costs as much as all the rest of bunny.
    class Raw < Bunny::Channel
      # Bunny 3 takes the pool by its name.
      def initialize(session)
        Bunny::VERSION.to_i >= 3 ? super(session, nil, { work_pool: AtOnce.new }) : super(session, nil, AtOnce.new)
        @takers = {}
      end

      # @private
      def take(tag, taker)
        @takers[tag] = taker
      end

      # @private
      def handle_frameset(deliver, properties, content)
        taker = @takers[deliver.consumer_tag] or return super
        taker.call(deliver.delivery_tag, deliver.redelivered, properties, content)
      end
    end

    attr_reader :connection

    # Opens one. Only in {Connection#call}.
    def self.open(connection, session)
      new(connection, Raw.new(session).open)
    end

    def initialize(connection, raw)
      @connection = connection
      @raw = raw
      @closed = false
      @publishing = Mutex.new
      raw.default_exchange # in bunny's books, for what is returned
    end

    def closed?
      @closed || !@raw.open? || !@connection.lost.nil?
    end

    def qos(prefetch)
      call { @raw.basic_qos(prefetch) }
    end

    # Declares a queue and gives its name.
    def declare(queue, **options)
      call { @raw.queue_declare(queue.b, options) }.queue
    end

    # Binds a queue to a fanout exchange.
    def bind(queue, exchange)
      call { @raw.queue_bind(queue, exchange, routing_key: '') }
    end

    # Consumes a queue. `on_message.call(delivery_tag, redelivered, properties, body)` runs where it must not wait for anything.
    def consume(queue, tag, on_message, no_ack: false, arguments: {}, on_cancel: nil)
      consumer = Bunny::Consumer.new(@raw, queue.b, tag, no_ack, false, arguments)
      consumer.on_delivery { |info, properties, body| on_message.call(info.delivery_tag, info.redelivered, properties.to_hash, body) }
      @raw.take(tag, on_message)
      consumer.on_cancellation { on_cancel&.call }
      call { @raw.basic_consume_with(consumer) }
    end

    # Stops consuming. What comes meanwhile is handed over still.
    def cancel(tag)
      call { @raw.basic_cancel(tag) }
    end

    def ack(tag)
      quietly { @raw.basic_ack(tag) }
    end

    # Hands back.
    def requeue(tag)
      quietly { @raw.basic_nack(tag, false, true) }
    end

    # Gives to the dead-letter exchange.
    def reject(tag)
      quietly { @raw.basic_reject(tag, false) }
    end

    # Has a block called for each publish that is answered: `(number, nack)`.
    def confirm(&block)
      call { @raw.confirm_select(->(number, _multiple, nack) { block.call(number, nack) }) }
    end

    # Has a block called for what is returned: `(correlation id, why)`, before it is confirmed.
    def on_return(*exchanges, &block)
      exchanges.each do |name|
        exchange = name.empty? ? @raw.default_exchange : @raw.direct(name, no_declare: true)
        exchange.on_return do |info, properties, _body|
          where = "exchange #{info.exchange.inspect}, routing key #{Wire.valid(info.routing_key).inspect}"
          block.call(properties.correlation_id, "#{info.reply_code} #{info.reply_text}: #{where}")
        end
      end
    end

    # Publishes without waiting for anything. The block is given the number of the publish before it is written.
    def publish(message, &block)
      @publishing.synchronize do
        raise lost if closed?

        block&.call(@raw.next_publish_seq_no)
        @raw.basic_publish(message.body.b, message.exchange, message.key.b, properties(message))
      end
    rescue Connection::Lost
      raise
    rescue StandardError => e
      raise @connection.lost || Connection::Lost.new(e)
    end

    # Bunny notes each confirmed publish for somebody who waits for all of them, and nobody does.
    def forget_confirms
      @raw.instance_variable_get(:@confirms_continuations)&.clear
    end

    # Begins to close.
    def close
      return if closed?

      call { @raw.close }
    rescue Connection::Lost
      nil
    ensure
      @closed = true
    end

    def lost
      @connection.lost || Connection::Lost.new(why)
    end

    private

    # Why it is closed, in the words of the broker, which bunny keeps to itself.
    def why
      @raw.instance_variable_get(:@last_channel_error) || 'the channel is closed'
    end

    def properties(message)
      {
        content_type: 'application/json', persistent: true, timestamp: Time.now.to_i, priority: message.priority,
        mandatory: message.mandatory, headers: message.headers, message_id: message.message_id&.b, type: message.type&.b,
        reply_to: message.reply_to, correlation_id: message.correlation_id
      }.compact
    end

    def call(&block)
      raise lost if closed?

      @connection.call(@raw, &block)
    end

    def quietly
      yield unless closed?
    rescue StandardError
      nil
    end
  end
end
