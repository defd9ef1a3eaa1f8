# frozen_string_literal: true

module Millrace
  # A channel in confirm mode.
  # @private
  class Publisher
    # How many publishes may be unconfirmed on a channel.
    WINDOW = 1000
    # How often it is looked whether the channel was closed, of which bunny tells nobody.
    LOOK = 0.5

    # The broker has returned the message, for no queue takes it. It has not stored it.
    class Returned < Refused; end

    attr_reader :channel

    def initialize(connection, *exchanges)
      @unanswered = {}
      @returned = {}
      @mutex = Mutex.new
      @answered = ConditionVariable.new
      @channel = connection.channel
      @channel.on_return('', *exchanges) { |id, why| @mutex.synchronize { @returned[id] = why } }
      @channel.confirm { |number, nack| settle(number, nack) }
      connection.on_lost { lose }
    end

    # Publishes. The block is called once with nil, Refused or Returned, or Connection::Lost when nobody knows; not here, and it must
    # not wait.
    def publish(message, &answer)
      message = message.dup
      @channel.publish(message) do |number|
        message.correlation_id = number.to_s
        @mutex.synchronize { @unanswered[number] = [answer, message.exchange] }
      end
      look # it may have been lost after it was looked at, and before there was something to answer
    rescue Connection::Lost => e
      raise unless message.correlation_id # else it has been, or is, in the books

      @mutex.synchronize { @unanswered.delete(message.correlation_id.to_i) }&.first&.call(e)
    end

    # Publishes and returns when the broker has the message; raises Refused if it will not have it, Connection::Lost if nobody knows,
    # Timeout::Error after some seconds, or when the block, which is asked now and then, is true.
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

    # Waits until there is room in the window, at most for some seconds, and tells whether there is.
    def room?(seconds)
      @mutex.synchronize do
        @answered.wait(@mutex, seconds) if @unanswered.size >= WINDOW
        @unanswered.size < WINDOW
      end
    end

    # Gives what was not answered to those who wait for it, if the channel is gone.
    def look
      lose if @channel.closed?
    end

    # What a thread waits for.
    class Answer
      attr_reader :error

      def initialize
        @bell = Bell.new
        @given = false
      end

      # Ends the waiting.
      def give(error)
        @error = error
        @given = true
        @bell.ring
      end

      # Waits for some seconds, and tells whether it was given.
      def wait(seconds)
        @bell.wait(seconds) { @given }
      end
    end

    private

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

      Refused.new('the broker answered nack') if nack
    end

    def lose
      answers = @mutex.synchronize do
        @answered.broadcast
        @unanswered.values.tap { @unanswered.clear }
      end
      lost = @channel.lost
      # The broker closes the channel if there is no such exchange, or the user may not write to it.
      refused = Refused.new("#{lost.code} #{lost.reason.message}") if [Connection::NOT_FOUND, Connection::REFUSED].include?(lost.code)
      answers.each { |answer, exchange| answer.call((refused unless exchange.empty?) || lost) }
    end
  end
end
