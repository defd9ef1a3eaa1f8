# frozen_string_literal: true

module Millrace
  # A worker on one connection, with all that belongs to this connection.
  # @private
  class Session
    # How many seconds pass between checks whether a channel is closed. Bunny does not report that.
    LOOK = 0.5
    # A prefetch with which a consumer never has so many acknowledgements on their way that RabbitMQ
    # holds some back. A channel passes 32 acknowledgements on to a quorum queue at a time. It
    # forgets those that it holds back when it closes, and their jobs run again.
    FEW_ACKS = 24
    # How many seconds the broker gets for the last acknowledgements of other consumers.
    ACK_TIME = 1

    attr_reader :worker, :connection, :publisher, :ledger, :claims, :control

    # Connects, and prepares everything except the lanes. Raises Connection::Lost.
    def self.open(worker)
      new(worker, worker.hosts.open("millrace worker #{worker.identity}"))
    end

    def initialize(worker, connection)
      @worker = worker
      @connection = connection
      @tags = 0
      @mutex = Mutex.new
      connection.on_lost { worker.bell.ring }
      prepare
    rescue StandardError
      connection.drop
      raise
    end

    # Returns whether the session has ended or lost its connection.
    def over?
      @over || !@connection.lost.nil?
    end

    def next_tag
      "#{@worker.process}-#{@mutex.synchronize { @tags += 1 }}"
    end

    # Serves the lanes until the connection is lost, and returns the reason. Returns nil when the
    # worker has stopped.
    def run
      parts = start
      until over? || @worker.stopping?
        @worker.bell.wait(LOOK) { over? || @worker.stopping? }
        look
      end
      stop_in_order unless over?
      @in_order ? nil : @connection.lost
    ensure
      @over = true
      @worker.bell.ring
      @connection.close(5)
      parts&.each { |part| part.join(1) || part.kill }
    end

    # Returns whether a queue exists, after declaring a missing one. It does not declare an existing
    # queue, which may have other arguments.
    def ensure_queue(name)
      full = Wire::QUEUE_PREFIX + name
      return true if @connection.queue?(full)
      return false unless @worker.declare

      declare(full)
      @connection.queue?(full)
    end

    # Does not show the parts, which have the broker's password.
    def inspect
      "#<#{self.class} of #{@worker.identity}>"
    end

    private

    def prepare
      @publisher = Publisher.new(@connection)
      @metrics_channel = @connection.channel # for metrics, whose publishes are not confirmed
      @control = Control.listen(self)
      @ledger = Ledger.new(self)
      @ledger.open
      @claims = Claims.new(self)
      Control.learn_state(self)
      @worker.metrics.attach(lambda { |body|
        @metrics_channel.publish(Wire::Message.new(exchange: '', key: Wire::METRICS, body: body, mandatory: false))
      })
    end

    # Declares a classic queue with priorities. It sets the type only if the virtual host has
    # another default type. Elsewhere the queue then equals the queues that other programs declare.
    def declare(queue)
      arguments = { 'x-max-priority' => Wire::MAX_PRIORITY }
      begin
        declare_with(queue, arguments)
      rescue Connection::Lost => e
        raise unless e.code == Connection::PRECONDITION_FAILED

        declare_with(queue, arguments.merge('x-queue-type' => 'classic'))
      end
    rescue Connection::Lost => e
      raise if @connection.lost

      @worker.log.warn("#{queue} could not be declared: #{e.message}")
    end

    # Declares on a channel of its own, because a refusal closes the channel.
    def declare_with(queue, arguments)
      channel = @connection.channel
      channel.declare(queue, durable: true, arguments: arguments)
    ensure
      channel&.close
    end

    def start
      parts = @worker.pools.map { |pool| part("lane #{pool.lane.name}") { serve(pool) } }
      parts << part('heartbeats') { beats } << part('ends') { @ledger.catch_up }
    end

    def part(name)
      thread = Thread.new do
        yield
      rescue StandardError => e
        next if over?

        @worker.log.error("#{name} failed: #{Record.message(e)}\n#{e.backtrace.join("\n")}")
        @connection.lose(e)
      end
      thread.name = "millrace #{name}"
      thread
    end

    # The session ends if one of these channels is closed.
    def look
      return unless @publisher.channel.closed? || @metrics_channel.closed?

      @connection.lose('the broker closed a channel')
      @connection.drop
    end

    # Consumes a lane's queues, and opens a new channel when one is lost.
    def serve(pool)
      pauses = Pauses.new
      until over?
        began = Wire.ticks
        why = attach(pool)
        return if over?

        pauses = Pauses.new if Wire.ticks - began > Pauses::LONGEST
        @worker.log.warn("lane #{pool.lane.name} lost its channel, it opens another: #{why}")
        @worker.bell.wait(pauses.next) { over? }
      end
    end

    def attach(pool)
      attachment = Attachment.new(self, pool)
      attachment.run
      'the broker cancelled a consumer, or closed the channel'
    rescue Connection::Lost => e
      e.message
    ensure
      attachment&.channel&.close unless over?
    end

    def stop_in_order
      @worker.settler.wait(@worker.stop_timeout)
      @worker.settler.hand_back
      @in_order = true
      @worker.hooks.call_and_wait(:shutdown)
      @ledger.close
      @worker.metrics.flush
      beat
      await_acks
    end

    # Gives the broker time for the last acknowledgements before the connection is closed. Does not
    # wait if the connection is lost, or after a second stop.
    def await_acks
      return unless @worker.pools.any? { |pool| pool.lane.prefetch > FEW_ACKS }

      @worker.bell.wait(ACK_TIME) { over? || @worker.hurried? }
    end

    def beats
      until over?
        beat
        @worker.bell.wait(@worker.heartbeat) { @worker.beat_due? || over? }
        @worker.beat_due = false
      end
    end

    def beat
      body = Wire.dump(Heartbeat.describe(@worker, @rtt_us))
      start = Wire.ticks
      @publisher.publish_and_wait(Wire::Message.new(exchange: '', key: Wire::HEARTBEATS, body: body), seconds: 2)
      @rtt_us = ((Wire.ticks - start) * 1e6).to_i
    rescue Connection::Lost, Refused, ::Timeout::Error
      @rtt_us = nil
    end
  end
end
