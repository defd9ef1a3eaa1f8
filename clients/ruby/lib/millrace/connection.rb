# frozen_string_literal: true

require 'logger'
require 'timeout'
require_relative 'bunny_session'

module Millrace
  # A connection to the broker, until it is lost. Only this class and {Channel} use bunny. Bunny's
  # own recovery is off, and its reader thread runs only code that passes deliveries and answers on.
  #
  # Every call that waits for an answer of the broker goes through {#call}, for two reasons:
  #
  # - Calls must run one at a time. Bunny's reader thread blocks when one thread opens a channel
  #   while another closes one.
  # - A call must end when the connection is lost. Bunny would not notice.
  # @private
  class Connection
    ANSWER_TIMEOUT = 10
    HEARTBEAT = 10
    REFUSED = 403
    NOT_FOUND = 404
    LOCKED = 405
    PRECONDITION_FAILED = 406

    # Raised when the connection or channel is lost. `code` is the broker's reply code, or nil.
    class Lost < StandardError
      attr_reader :code, :reason

      def initialize(reason)
        @reason = reason.is_a?(Exception) ? innermost(reason) : reason
        @code = code_of(@reason)
        super(@reason.is_a?(Exception) ? "#{@reason.message[0, 300]} (#{@reason.class})" : @reason.to_s)
      end

      # Returns whether the broker refuses the client, so that further attempts are useless.
      def unwelcome?
        @reason.is_a?(Bunny::PossibleAuthenticationFailureError) || [403, 530].include?(@code)
      end

      private

      # Returns the original error. Bunny wraps an error of connecting in several others.
      def innermost(error)
        error = error.cause while error.cause && !error.cause.equal?(error) && !error.is_a?(Bunny::ChannelLevelException)
        error
      end

      def code_of(error)
        frame = %i[channel_close connection_close].find { |name| error.respond_to?(name) }
        frame && error.public_send(frame)&.reply_code
      end
    end

    # Raises ArgumentError unless the text is a URL of one host.
    def self.check_url(url)
      settings(url)
    rescue URI::InvalidURIError
      raise ArgumentError, "the broker's URL cannot be read: write special characters of user, password and virtual host as %2F"
    end

    # Returns the host and port of a URL.
    def self.address(url)
      settings(url).values_at(:host, :port)
    end

    # Connects once to an address of the URL's host, and logs in within the given seconds. Raises
    # Lost if that fails. `user` is `{ username:, password: }`, and replaces the user of the URL.
    def self.open(url, address, name, within, user = {})
      new.tap { |connection| connection.open(settings(url).merge(address: address, **user), name, within) }
    end

    def self.settings(url)
      settings = Bunny::Session.parse_uri(url).compact
      wanted = settings[:heartbeat].to_i
      # By default, bunny does not verify certificates.
      settings[:verify_peer] = true unless url.match?(/[?&]verify=/)
      settings[:host] = settings[:host].delete('[]') # of an IPv6 address
      # Bunny reads a trailing slash as a virtual host without a name
      settings[:vhost] = '/' if settings[:vhost].to_s.empty?
      settings.merge(heartbeat: wanted.between?(1, HEARTBEAT) ? wanted : HEARTBEAT)
    end

    attr_reader :lost

    def initialize
      @mutex = Mutex.new
      @calls = Monitor.new
      @callers = []
      @listeners = []
    end

    def open(settings, name, within)
      ::Timeout.timeout(within, nil, 'no answer in time') do
        @session = BunnySession.new(
          settings.merge(automatically_recover: false, recover_from_connection_close: false, session_error_handler: Listener.new(self),
                         connection_timeout: within, read_timeout: within, write_timeout: 2 * ANSWER_TIMEOUT,
                         continuation_timeout: ANSWER_TIMEOUT * 1000, connection_name: name, log_file: File::NULL, logger: Logger.new(nil))
        )
        @session.start
      end
      raise @lost if @lost
    rescue StandardError => e
      lose(e)
      drop
      raise @lost
    end

    # Calls the block once when the connection is lost, or immediately if it is lost already.
    def on_lost(&block)
      gone = @mutex.synchronize do
        @listeners << block unless @lost
        @lost
      end
      block.call if gone
    end

    # Marks the connection as lost, and interrupts the threads that wait for it.
    def lose(reason)
      listeners = @mutex.synchronize do
        return if @lost

        @lost = reason.is_a?(Lost) ? reason : Lost.new(reason)
        @callers.each { |thread| thread.raise(@lost) unless thread == Thread.current }
        @listeners
      end
      listeners.each(&:call)
    end

    # Runs a block that waits for the broker. Any error in it is raised as Lost. If the broker
    # closed the block's channel, no other call runs until bunny has forgotten that channel.
    def call(channel = nil, &block)
      @calls.synchronize do
        Thread.handle_interrupt(Lost => :never) { interruptible(block) }
      ensure
        forget(channel) unless channel.nil? || channel.open? || @lost
      end
    end

    # Opens a channel.
    def channel
      call { Channel.open(self, @session) }
    end

    # Returns whether a queue exists. It asks on a channel of its own, because the answer may close
    # the channel.
    def queue?(name)
      asking = channel
      asking.declare(name, passive: true)
      true
    rescue Lost => e
      raise unless [NOT_FOUND, LOCKED].include?(e.code)

      e.code == LOCKED
    ensure
      asking&.close
    end

    # Closes the socket. The broker delivers unacknowledged messages again.
    def drop
      @session&.transport&.close
    rescue StandardError
      nil
    end

    # Closes the connection with a handshake, within the given seconds.
    def close(within)
      return drop if @lost

      closing = Thread.new { @session.close }
      closing.report_on_exception = false
      closing.join(within)
    rescue StandardError
      nil
    ensure
      closing&.kill
      lose('closed')
      drop
    end

    # Bunny reports to this object what ends a connection. Otherwise bunny would raise in the thread
    # that made the connection.
    class Listener
      def initialize(connection)
        @connection = connection
      end

      # @private
      def raise(*reason)
        @connection.lose(reason.first)
        @connection.drop
      end
    end

    # Does not show the broker's password.
    def inspect
      "#<#{self.class}>"
    end

    private

    def interruptible(block)
      @mutex.synchronize do
        raise @lost if @lost

        @callers << Thread.current
      end
      Thread.handle_interrupt(Lost => :immediate, &block)
    rescue Lost
      raise
    rescue StandardError => e
      raise @lost || gone(e)
    ensure
      @mutex.synchronize { @callers.delete(Thread.current) }
    end

    # Waits until bunny has forgotten a channel that the broker closed. Bunny frees the channel's
    # number earlier. A new channel with that number would then be forgotten in its place.
    def forget(channel)
      deadline = Wire.ticks + 1
      sleep 0.001 while @session.find_channel(channel.number).equal?(channel) && Wire.ticks < deadline
    end

    # After an error that is not the broker's answer, the state of the connection is unknown, so it
    # is dropped.
    def gone(error)
      found = Lost.new(error)
      return found if found.code

      lose(found)
      drop
      found
    end
  end
end
