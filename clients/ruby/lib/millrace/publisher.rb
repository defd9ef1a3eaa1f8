# frozen_string_literal: true

module Millrace
  # A channel in confirm mode.
  # @private
  class Publisher
    # How many publishes may be unconfirmed on a channel.
    WINDOW = 1000
    # How many seconds pass between checks whether the channel is closed. Bunny does not report
    # that.
    LOOK = 0.5

    # Raised when the broker returned the message because no queue takes it. The broker has not
    # stored it.
    class Returned < Refused; end

    attr_reader :channel

    def initialize(connection, *exchanges)
      @unanswered = {}
      @returned = {}
      @replies = {} # that the leader still owes
      @listening = false
      @mutex = Mutex.new
      @answered = ConditionVariable.new
      @channel = connection.channel
      @channel.on_return('', *exchanges) { |id, why| @mutex.synchronize { @returned[id] = why } }
      @channel.confirm { |number, nack| settle(number, nack) }
      connection.on_lost { lose }
    end

    # Publishes. The block is called once, in another thread, and must not wait. It gets nil, a
    # Refused, a Returned, or a Connection::Lost if it is unknown whether the message arrived.
    # `reply` gets the leader's answer to the message, if there is one.
    def publish(message, reply: nil, &answer)
      message = message.dup
      listen(message) if reply
      @channel.publish(message) do |number|
        message.correlation_id = number.to_s
        @mutex.synchronize { @replies[message.correlation_id] = reply } if reply
        @mutex.synchronize { @unanswered[number] = [answer, message.exchange] }
      end
      # The channel may have been lost after the last check and before this publish was registered.
      look
    rescue Connection::Lost => e
      raise unless message.correlation_id # otherwise the block has been called, or will be

      @mutex.synchronize { @unanswered.delete(message.correlation_id.to_i) }&.first&.call(e)
    end

    # Publishes, and returns when the broker has the message. Raises Refused if the broker does not
    # take it, Connection::Lost if that is unknown, and Timeout::Error after `seconds`, or when the
    # block, which is called regularly, returns true.
    def publish_and_wait(message, seconds: nil)
      answer = Answer.new
      publish(message) { |error| answer.give(error) }
      deadline = seconds && (Wire.ticks + seconds)
      until answer.wait(LOOK)
        lose if @channel.closed?
        raise ::Timeout::Error, 'no answer from the broker' if (deadline && Wire.ticks > deadline) || (block_given? && yield)
      end
      raise answer.error if answer.error
    end

    # Waits for room in the window, at most for some seconds. Returns whether there is room.
    def room?(seconds)
      @mutex.synchronize do
        @answered.wait(@mutex, seconds) if @unanswered.size >= WINDOW
        @unanswered.size < WINDOW
      end
    end

    # If the channel is gone, ends all publishes that have no answer.
    def look
      lose if @channel.closed?
    end

    # Expects no reply of the leader any more.
    def forget(reply)
      @mutex.synchronize { @replies.delete_if { |_, other| other.equal?(reply) } }
    end

    # The answer to a publish, for which a thread waits.
    class Answer
      # The error of a publish, or what the leader said.
      attr_reader :error
      alias said error

      def initialize
        @bell = Bell.new
        @given = false
      end

      # Sets the answer, and wakes the thread.
      def give(error)
        @error = error
        @given = true
        @bell.ring
      end

      # Waits for some seconds, and returns whether the answer came.
      def wait(seconds)
        @bell.wait(seconds) { @given }
      end
    end

    private

    # Consumes the replies of the leader, if that was not done before.
    def listen(message)
      message.reply_to = Leader::REPLY
      return if @listening

      on_reply = lambda do |_, _, properties, body|
        @mutex.synchronize { @replies.delete(properties[:correlation_id]) }&.give(Parse.object(body))
      end
      @channel.consume(Leader::REPLY, 'replies', on_reply, no_ack: true)
      @listening = true
    end

    def settle(number, nack)
      answer, why = @mutex.synchronize do
        @answered.signal
        [@unanswered.delete(number)&.first, @returned.delete(number.to_s)]
      end
      @channel.forget_confirms if (number % 1000).zero?
      return unless answer

      answer.call(refusal(why, nack))
    end

    def refusal(why, nack)
      return Returned.new(why) if why

      Refused.new('the broker answered nack: the queue is full or unavailable, try again later') if nack
    end

    def lose
      answers = @mutex.synchronize do
        @answered.broadcast
        @unanswered.values.tap { @unanswered.clear }
      end
      lost = @channel.lost
      # The broker closes the channel if the exchange does not exist, or the user may not write to
      # it.
      refused = Refused.new("#{lost.code} #{lost.reason.message}") if [Connection::NOT_FOUND, Connection::REFUSED].include?(lost.code)
      answers.each { |answer, exchange| answer.call((refused unless exchange.empty?) || lost) }
    end
  end
end
