# frozen_string_literal: true

require 'socket'

module Millrace
  # The thread that owns a producer's connection. It publishes in the order in which it is asked, again what a lost connection left
  # unanswered or the broker has returned, and nothing whose deadline has passed.
  # @private
  class Line
    # How many seconds pass at most between two tries of a message that the broker returns. RabbitMQ does so while a stream has no leader,
    # as in the moments after a restart.
    LONGEST_RETURNED = 1.0
    # How many seconds such a try must leave for the answer.
    ANSWER_TIME = 0.5

    # A publish on its way.
    class Entry
      attr_reader :jid, :message, :until, :due
      attr_accessor :number, :sent, :lost, :why

      def initialize(jid, message, seconds)
        @jid = jid
        @message = message
        @began = Wire.ticks
        @until = @began + seconds
        @answer = Publisher::Answer.new
        @pauses = Pauses.new(LONGEST_RETURNED)
      end

      # Notes that the broker has returned it, and reports whether there is time to publish it again, when it is due.
      def returned?
        @sent = lost # of that it is not known
        @due = Wire.ticks + @pauses.next
        @due <= @until - ANSWER_TIME
      end

      # What to say of it when it was returned to the last.
      def refusal(error)
        refused = Refused.new("#{error.message}; tried for #{(Wire.ticks - @began).round(1)} s")
        sent ? failure(refused) : refused
      end

      def over?
        @over || Wire.ticks >= @until
      end

      # Gives what became of it to whom waits.
      def end(error = nil)
        @answer.give(error) unless @over
        @over = true
      end

      # Returns the jid when the broker has confirmed the job, and raises the reason otherwise.
      def wait
        answered = @answer.wait([@until - Wire.ticks, 0].max)
        @over = true
        raise @answer.error if @answer.error
        raise failure unless answered

        jid
      end

      # What to say of it when it is given up.
      def failure(reason = why)
        reason = ": #{reason.respond_to?(:message) ? reason.message : reason || 'the deadline passed'}"
        return Unreachable.new("broker not reached#{reason}") unless sent

        Unconfirmed.new("job #{jid} may or may not be enqueued, it was not confirmed#{reason}", jid)
      end
    end

    attr_reader :pid

    # With `fail_fast` a publish waits for one attempt to connect, and not for more until its deadline.
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

    # Publishes within some seconds, and returns what to wait for.
    def publish(jid, message, seconds)
      Entry.new(jid, message, seconds).tap do |entry|
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
      @thread.kill unless @thread.join(0.2) # it may be in the middle of an attempt to connect
      @publisher&.channel&.connection&.close(2)
      [*left, *@current].each { |entry| give_up(entry) }
    end

    # Without the broker's password.
    def inspect
      "#<#{self.class}>"
    end

    private

    def run
      send_out(@current) while (@current = take)
    end

    # The next entry; nil when it is closed. Looks now and then whether the channel is still there.
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

    # How many seconds there is nothing to do, if nothing more comes.
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
      publisher.publish(entry.message) { |error| answered(entry, publisher, error) }
    rescue Connection::Lost => e
      again(entry, publisher, e)
    end

    def give_up(entry)
      entry.end(entry.sent || !@closed ? entry.failure : Closed.new('the client was closed'))
    end

    # Called where nothing may wait.
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

    # The publisher that is open, or nil: there was none until the entry's deadline.
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

    # Those who wait learn what the last attempt came to; immediately where none of them waits for another one.
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

    # Reports whether no publish waits for another attempt: the broker has refused the client from the first, or the program wants no wait.
    def final?(error)
      @fail_fast || (error.unwelcome? && !@welcome)
    end
  end
end
