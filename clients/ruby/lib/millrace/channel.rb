# frozen_string_literal: true

module Millrace
  # A channel, until it is closed. Acknowledgements on a closed channel are ignored without an
  # error: the broker delivers those messages again.
  # @private
  class Channel
    # Makes bunny call consumers directly in its reader thread. That is safe because consumers only
    # store the delivery.
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

    # Bunny's channel, changed to pass deliveries on as they are. The objects that bunny makes of
    # each delivery cost as much as the rest of bunny.
    class Raw < Bunny::Channel
      # Bunny 3 takes the pool as a named option.
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

    # Opens a channel. Call it only in {Connection#call}.
    def self.open(connection, session)
      new(connection, Raw.new(session).open)
    end

    def initialize(connection, raw)
      @connection = connection
      @raw = raw
      @closed = false
      @publishing = Mutex.new
      # This registers the exchange with bunny, so that bunny passes on the messages that it
      # returns.
      raw.default_exchange
    end

    def closed?
      @closed || !@raw.open? || !@connection.lost.nil?
    end

    def qos(prefetch)
      call { @raw.basic_qos(prefetch) }
    end

    # Declares a queue and returns its name.
    def declare(queue, **options)
      call { @raw.queue_declare(queue.b, options) }.queue
    end

    # Binds a queue to a fanout exchange.
    def bind(queue, exchange)
      call { @raw.queue_bind(queue, exchange, routing_key: '') }
    end

    # Consumes a queue. `on_message.call(delivery_tag, redelivered, properties, body)` must not wait
    # for anything.
    def consume(queue, tag, on_message, no_ack: false, arguments: {}, on_cancel: nil)
      consumer = Bunny::Consumer.new(@raw, queue.b, tag, no_ack, false, arguments)
      consumer.on_delivery { |info, properties, body| on_message.call(info.delivery_tag, info.redelivered, properties.to_hash, body) }
      @raw.take(tag, on_message)
      consumer.on_cancellation { on_cancel&.call }
      call { @raw.basic_consume_with(consumer) }
    end

    # Stops consuming. Deliveries that arrive meanwhile are still passed on.
    def cancel(tag)
      call { @raw.basic_cancel(tag) }
    end

    def ack(tag)
      quietly { @raw.basic_ack(tag) }
    end

    # Returns a delivery to its queue.
    def requeue(tag)
      quietly { @raw.basic_nack(tag, false, true) }
    end

    # Rejects a delivery, which the broker then dead-letters.
    def reject(tag)
      quietly { @raw.basic_reject(tag, false) }
    end

    # Calls the block with `(number, nack)` for each publish that the broker answers.
    def confirm(&block)
      call { @raw.confirm_select(->(number, _multiple, nack) { block.call(number, nack) }) }
    end

    # Calls the block with `(correlation id, reason)` for each returned message. Its confirm comes
    # later.
    def on_return(*exchanges, &block)
      exchanges.each do |name|
        exchange = name.empty? ? @raw.default_exchange : @raw.direct(name, no_declare: true)
        exchange.on_return do |info, properties, _body|
          where = "exchange #{info.exchange.inspect}, routing key #{Wire.valid(info.routing_key).inspect}"
          block.call(properties.correlation_id, "#{info.reply_code} #{info.reply_text}: #{where}")
        end
      end
    end

    # Publishes without waiting. The block gets the number of the publish before the message is
    # written.
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

    # Bunny keeps each confirmed publish for wait_for_confirms, which is never called here.
    def forget_confirms
      @raw.instance_variable_get(:@confirms_continuations)&.clear
    end

    # Closes the channel.
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

    # Returns the broker's reason for closing the channel. Bunny does not make it public.
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
