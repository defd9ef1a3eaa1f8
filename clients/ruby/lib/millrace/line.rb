# frozen_string_literal: true

require 'socket'

module Millrace
  # The thread that owns a producer's connection. It publishes jobs in the order in which they come.
  # It publishes a job again if the connection was lost before the answer, or the broker returned
  # it. It publishes nothing after its deadline.
  # @private
  class Line
    # The maximum of seconds between two tries of a returned message. RabbitMQ returns a message
    # while its stream has no leader, as in the moments after a restart.
    LONGEST_RETURNED = 1.0
    # How many seconds before the deadline the last try must be.
    ANSWER_TIME = 0.5

    # A publish in progress.
    class Entry
      attr_reader :jid, :message, :until, :due
      attr_accessor :number, :sent, :lost, :why, :publisher
      # The leader's answer, if the message asks for one.
      attr_reader :reply

      def initialize(jid, message, seconds, asks)
        @jid = jid
        @message = message
        @began = Wire.ticks
        @until = @began + seconds
        @answer = Publisher::Answer.new
        @reply = Publisher::Answer.new if asks
        @pauses = Pauses.new(LONGEST_RETURNED)
      end

      # Notes that the broker returned the message. Returns whether there is time for another try,
      # and sets when that is due.
      def returned?
        @sent = lost # after a return, only a lost earlier try may have arrived
        @due = Wire.ticks + @pauses.next
        @due <= @until - ANSWER_TIME
      end

      # Returns the error when the last try was returned too.
      def refusal(error)
        refused = Refused.new("#{error.message}; tried for #{(Wire.ticks - @began).round(1)} s")
        sent ? failure(refused) : refused
      end

      def over?
        @over || Wire.ticks >= @until
      end

      # Passes the result to the thread that waits for it.
      def end(error = nil)
        @answer.give(error) unless @over
        @over = true
      end

      # Returns the jid when the broker has confirmed the job, and raises the error otherwise.
      def wait
        answered = @answer.wait([@until - Wire.ticks, 0].max)
        @over = true
        raise @answer.error if @answer.error
        raise failure unless answered

        jid
      end

      # Returns the leader's decision about the job, when the broker has confirmed the job. It is not
      # published again after that: it may have run already.
      def decision
        wait
        nil until (decided = @reply.wait(Publisher::LOOK)) || Wire.ticks >= @until || publisher.channel.closed?
        return Decision.by(@reply.said, jid) if decided

        why = Wire.ticks >= @until ? 'no leader has answered before the deadline' : 'the connection was lost or closed'
        raise Undecided.new("job #{jid} is published, and a leader will decide whether it is a duplicate: #{why}", jid)
      ensure
        publisher&.forget(@reply)
      end

      # Returns the error when the publish is given up.
      def failure(reason = why)
        reason = ": #{reason.respond_to?(:message) ? reason.message : reason || 'the deadline passed'}"
        return Unreachable.new("broker not reached#{reason}") unless sent

        Unconfirmed.new("job #{jid} may or may not be enqueued, it was not confirmed#{reason}", jid)
      end
    end

    attr_reader :pid

    # With `fail_fast`, a publish waits for one attempt to connect, and not until its deadline.
    def initialize(hosts, fail_fast: false)
      @pid = ::Process.pid
      @hosts = hosts
      @fail_fast = fail_fast
      @mutex = Mutex.new
      @more = ConditionVariable.new
      @pending = []
      @returned = [] # in the order in which they are due
      @count = 0
      @pauses = Pauses.new
      @welcome = false
      @closed = false
      @thread = Thread.new { run }
      @thread.name = 'millrace producer'
    end

    # Publishes within the given seconds. Returns the entry to wait for. `asks` says whether the leader
    # is to answer.
    def publish(jid, message, seconds, asks: false)
      Entry.new(jid, message, seconds, asks).tap do |entry|
        @mutex.synchronize do
          raise Closed, 'the client was closed' if @closed

          entry.number = @count += 1
          entry.why = @why
          @pending << entry
          @more.signal
        end
      end
    end

    def close
      left = @mutex.synchronize do
        @closed = true
        @more.signal
        @pending.slice!(0..) + @returned.slice!(0..)
      end
      @thread.kill unless @thread.join(0.2) # the thread may be connecting
      @publisher&.channel&.connection&.close(2)
      [*left, *@current].each { |entry| give_up(entry) }
    end

    # Does not show the broker's password.
    def inspect
      "#<#{self.class}>"
    end

    private

    def run
      send_out(@current) while (@current = take)
    end

    # Returns the next entry, or nil when the line is closed. It checks the channel regularly.
    def take
      loop do
        @mutex.synchronize do
          return if @closed
          return @returned.shift if @returned.any? && @returned.first.due <= Wire.ticks
          return @pending.shift unless @pending.empty?

          @more.wait(@mutex, idle)
        end
        @publisher&.look
      end
    end

    # Returns for how many seconds there is nothing to do, if no job comes.
    def idle
      due = @returned.first&.due
      [@publisher && Publisher::LOOK, due && [due - Wire.ticks, 0].max].compact.min
    end

    def send_out(entry)
      return if entry.over?

      publisher = connected(entry) or return give_up(entry)
      until publisher.room?(Publisher::LOOK)
        publisher.look
        return give_up(entry) if entry.over? || @closed
      end
      entry.sent = true
      entry.publisher = publisher
      publisher.publish(entry.message, reply: entry.reply) { |error| answered(entry, publisher, error) }
    rescue Connection::Lost => e
      again(entry, publisher, e)
    end

    def give_up(entry)
      entry.end(entry.sent || !@closed ? entry.failure : Closed.new('the client was closed'))
    end

    # Called by the reader thread, so it must not wait.
    def answered(entry, publisher, error)
      case error
      when Connection::Lost then again(entry, publisher, error)
      when Publisher::Returned then later(entry, error)
      else entry.end(error)
      end
    end

    def later(entry, error)
      return entry.end(entry.refusal(error)) unless entry.returned?

      @mutex.synchronize do
        return give_up(entry) if @closed

        at = @returned.bsearch_index { |other| other.due > entry.due } || @returned.size
        @returned.insert(at, entry)
        @more.signal
      end
    end

    def again(entry, publisher, error)
      entry.why = error
      entry.lost = entry.sent
      @mutex.synchronize do
        @publisher = nil if @publisher.equal?(publisher)
        return entry.end(entry.failure) if @closed

        at = @pending.index { |other| other.number > entry.number } || @pending.size
        @pending.insert(at, entry)
        @more.signal
      end
      publisher&.channel&.connection&.drop
    end

    # Returns the open publisher, or nil if there was none before the entry's deadline.
    def connected(entry)
      until @publisher
        return if entry.over? || @closed

        connect or pause(entry)
      end
      @publisher
    end

    def connect
      connection = @hosts.open("millrace producer #{Socket.gethostname}:#{@pid}")
      publisher = Publisher.new(connection, Wire::DIRECT)
      @mutex.synchronize { @publisher = publisher }
      @pauses = Pauses.new
      @welcome = true
    rescue Connection::Lost => e
      connection&.drop
      failed(e)
      false
    end

    # Gives waiting publishes the error of the last attempt to connect. If no further attempt is
    # wanted, it ends them.
    def failed(error)
      @mutex.synchronize do
        @why = error
        @pending.each { |entry| entry.why = error }
        return unless final?(error)

        @pending.slice!(0..)
      end&.each { |entry| entry.end(entry.failure) }
    end

    def pause(entry)
      entry.why = @why
      return entry.end(entry.failure) if final?(@why)

      sleep [@pauses.next, [entry.until - Wire.ticks, 0].max].min
    end

    # Returns whether publishes must not wait for another attempt: with `fail_fast`, or if the
    # broker has refused the client from the beginning.
    def final?(error)
      @fail_fast || (error.unwelcome? && !@welcome)
    end
  end
end
