# frozen_string_literal: true

require 'securerandom'
require 'socket'

module Millrace
  # Sends a command to the leader until that has answered, or the time is over. The leader carries
  # out the id of a command once. Commands are rare, so each try has a connection of its own.
  # @private
  class Leader
    REPLY = 'amq.rabbitmq.reply-to'
    NO_LEADER = 'no sidecar leads right now'
    # How many seconds the leader may take to answer.
    ANSWER_WITHIN = 5

    # Sends a command once, and returns the answer. Raises Publisher::Returned if it is known that the
    # leader has done nothing, and Connection::Lost if there is no answer. The block says whether to
    # stop waiting.
    def self.ask(connection, command, within, bell: Bell.new, tag: 'leader')
      channel = connection.channel
      answer = nil
      on_reply = lambda do |_, _, _, body|
        answer = Parse.object(body)
        bell.ring
      end
      channel.on_return('') { |*| on_reply.call(0, false, {}, '{"status":503}') }
      channel.consume(REPLY, tag, on_reply, no_ack: true)
      message = { exchange: '', key: Wire::LEADER, body: Wire.dump(command), reply_to: REPLY, correlation_id: command['id'] }
      channel.publish(Wire::Message.new(**message))
      deadline = Wire.ticks + within
      nil until bell.wait(Publisher::LOOK) { answer || connection.lost || yield } || Wire.ticks > deadline
      raise connection.lost || Connection::Lost.new('the leader did not answer') unless answer
      raise Publisher::Returned, [NO_LEADER, answer['reason']].compact.join(': ') if answer['status'] == 503

      answer
    ensure
      channel&.close
    end

    # The block says whether the client is closed.
    def initialize(hosts, fail_fast:, &closed)
      @hosts = hosts
      @fail_fast = fail_fast
      @closed = closed
      @pauses = Pauses.new(Line::LONGEST_RETURNED)
      @sent = false # whether the leader may have carried it out
    end

    # Returns the answer to a command. Raises Refused if no sidecar leads, and Unreachable,
    # Unconfirmed or Closed.
    def call(command, seconds)
      asking = Thread.new { repeat(command) }
      asking.report_on_exception = false
      asking.join(seconds) ? asking.value : raise(failure)
    ensure
      asking&.kill # it may be connecting
    end

    private

    def repeat(command)
      loop do
        reply = attempt(command)
        return reply if reply
        raise failure if @closed.call

        sleep @pauses.next
      end
    end

    def attempt(command)
      connection = @hosts.open("millrace producer #{Socket.gethostname}:#{::Process.pid}")
      before = @sent
      @sent = true
      Leader.ask(connection, command, ANSWER_WITHIN, &@closed)
    rescue Publisher::Returned => e
      @sent = before
      @why = e
      nil
    rescue Connection::Lost => e
      @why = e
      raise failure if connection.nil? && (@fail_fast || e.unwelcome?)
    ensure
      connection&.close(2)
    end

    def failure
      why = ": #{@why&.message || 'the deadline passed'}"
      return Unconfirmed.new("the leader may or may not have carried it out#{why}") if @sent
      return Closed.new('the client was closed') if @closed.call

      @why.is_a?(Publisher::Returned) ? Refused.new(@why.message) : Unreachable.new("broker not reached#{why}")
    end
  end
end
