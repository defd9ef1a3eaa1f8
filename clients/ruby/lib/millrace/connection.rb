# frozen_string_literal: true

require 'logger'
require 'timeout'
require_relative 'bunny_session'

module Millrace
  # A connection to the broker, until it is lost. Bunny is only spoken to here and in {Channel}; it neither recovers connections nor runs
  # anybody's code in its reader thread, but what hands deliveries and answers over.
  #
  # Whatever waits for an answer of the broker goes through {#call}: one at a time, for bunny's reader thread blocks when a channel is
  # opened while another is closed; and it ends when the connection does, which bunny would not notice.
  # @private
  class Connection
    ANSWER_TIMEOUT = 10
    HEARTBEAT = 10
    REFUSED = 403
    NOT_FOUND = 404
    LOCKED = 405
    PRECONDITION_FAILED = 406

    # The connection or channel is gone. `code` is the broker's, or nil.
    class Lost < StandardError
      attr_reader :code, :reason

      def initialize(reason)
        @reason = reason.is_a?(Exception) ? innermost(reason) : reason
        @code = code_of(@reason)
        super(@reason.is_a?(Exception) ? "#{@reason.message[0, 300]} (#{@reason.class})" : @reason.to_s)
      end

      # Tells whether the broker will not have us, however often we ask.
      def unwelcome?
        @reason.is_a?(Bunny::PossibleAuthenticationFailureError) || [403, 530].include?(@code)
      end

      private

      # What bunny wrapped: the failure of an attempt to connect stands several errors deep.
      def innermost(error)
        error = error.cause while error.cause && !error.cause.equal?(error) && !error.is_a?(Bunny::ChannelLevelException)
        error
      end

      def code_of(error)
        frame = %i[channel_close connection_close].find { |name| error.respond_to?(name) }
        frame && error.public_send(frame)&.reply_code
      end
    end

    # Raises ArgumentError if that is no URL of one host.
    def self.check_url(url)
      settings(url)
    rescue URI::InvalidURIError
      raise ArgumentError, "the broker's URL cannot be read: write special characters of user, password and virtual host as %2F"
    end

    # Gives the host and port of a URL.
    def self.address(url)
      settings(url).values_at(:host, :port)
    end

    # Connects once, to an address of the URL's host, and logs in within some seconds; or raises Lost. A user in place of the URL's is
    # `{ username:, password: }`.
    def self.open(url, address, name, within, user = {})
      new.tap { |connection| connection.open(settings(url).merge(address: address, **user), name, within) }
    end

    def self.settings(url)
      settings = Bunny::Session.parse_uri(url).compact
      wanted = settings[:heartbeat].to_i
      # Bunny looks at no certificate if the URL does not ask for that.
      settings[:verify_peer] = true unless url.match?(/[?&]verify=/)
      settings[:host] = settings[:host].delete('[]') # of an IPv6 address
      settings[:vhost] = '/' if settings[:vhost].to_s.empty? # Bunny reads a trailing slash as a virtual host without a name
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

    # Calls the block once when the connection is lost; at once if it is.
    def on_lost(&block)
      gone = @mutex.synchronize do
        @listeners << block unless @lost
        @lost
      end
      block.call if gone
    end

    # Notes that the connection is gone, and ends whatever waits for it.
    def lose(reason)
      listeners = @mutex.synchronize do
        return if @lost

        @lost = reason.is_a?(Lost) ? reason : Lost.new(reason)
        @callers.each { |thread| thread.raise(@lost) unless thread == Thread.current }
        @listeners
      end
      listeners.each(&:call)
    end

    # Has the block wait for the broker. Whatever goes wrong in it is raised as Lost. If the broker closed the channel that the block is
    # about, nobody else's turn comes before bunny has forgotten it.
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

    # Tells whether a queue is there. Asked on a channel of its own, which the answer may close.
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

    # Closes the socket. The broker has what was not acknowledged.
    def drop
      @session&.transport&.close
    rescue StandardError
      nil
    end

    # Closes in order, within some seconds.
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

    # Told by bunny of what ends a connection, in place of the thread that made it.
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

    # Without the broker's password.
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

    # Waits until bunny has forgotten a channel that the broker closed: its number is free before it has, and a channel opened meanwhile
    # under that number would be forgotten in its place.
    def forget(channel)
      deadline = Wire.ticks + 1
      sleep 0.001 while @session.find_channel(channel.number).equal?(channel) && Wire.ticks < deadline
    end

    # An error that is not the broker's answer leaves nobody knowing where things stand.
    def gone(error)
      found = Lost.new(error)
      return found if found.code

      lose(found)
      drop
      found
    end
  end
end
