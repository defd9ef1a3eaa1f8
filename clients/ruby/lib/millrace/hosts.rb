# frozen_string_literal: true

require 'socket'

module Millrace
  # The hosts of a broker. It remembers the host to which this client connected last.
  # @private
  class Hosts
    # How many seconds it may take to connect to one address and log in.
    OPEN_TIMEOUT = 3

    # How many seconds the function for credentials may take.
    ASK_TIMEOUT = 30

    # Raised when the program gave no credentials. The client asks again for the next connection,
    # even if the error looks like a refusal by the broker.
    class NoCredentials < Connection::Lost
      def initialize(error)
        super("credentials: #{error.message[0, 300]} (#{error.class})")
      end
    end

    # Raised when no host accepted a connection.
    class Unreached < Connection::Lost
      def initialize(failures)
        @failures = failures
        super(failures.map { |address, error| "#{address}: #{error.message}" }.join('; '))
      end

      # If several hosts were tried, the refusal of one is enough.
      def unwelcome?
        @failures.any? { |_, error| error.unwelcome? }
      end
    end

    # @param urls [String, Array<String>] as {Client} takes them; ArgumentError if they are wrong
    # @param credentials [#call, nil] as {Client} takes it
    def initialize(urls, credentials = nil)
      @urls = Urls.split(urls)
      @credentials = credentials
      usable = credentials.nil? || credentials.respond_to?(:call)
      # The message does not show the value, which may be the password.
      raise ArgumentError, 'credentials has no method call that returns [username, password]' unless usable

      # Whether the last attempt connected; then a new attempt means that the connection was lost.
      @lost = false
    end

    # Connects to the first host that accepts. It tries each address of each host once. Raises
    # Unreached if none accepts, and NoCredentials if the program gives none.
    def open(name)
      user = @credentials ? ask : {}
      failures = []
      Hosts.try_order(@urls, @url, lost: @lost).each do |url|
        addresses(url, failures).each do |address|
          connection = Connection.open(url, address, name, OPEN_TIMEOUT, user)
          @url = url
          @address = address
          @lost = true
          return connection
        rescue Connection::Lost => e
          failures << [address, e]
        end
      end
      @lost = false
      raise Unreached, failures
    end

    # Returns the order in which to try hosts or addresses. The last good one is first, or last if
    # its connection was just lost. The others are in random order.
    def self.try_order(all, good, lost:)
      others = all.shuffle - [good]
      return others unless all.include?(good)

      lost ? [*others, good] : [good, *others]
    end

    private

    # Returns the user of the next connection, in bunny's form. The program's function runs in a
    # thread of its own, because it may hang and must not be interrupted while it holds resources.
    # While a call runs, no other is started, because each would leave a thread behind.
    def ask
      @asking = Thread.new { answer } unless @asking&.alive?
      raise ::Timeout::Error, "no answer in #{ASK_TIMEOUT} s" unless @asking.join(ASK_TIMEOUT)

      given = @asking.value
      raise given if given.is_a?(Exception)

      username, password = given if given.is_a?(Array) && given.size == 2
      raise TypeError, 'the function must return [username, password], both String' unless username.is_a?(String) && password.is_a?(String)

      { username: username, password: password }
    rescue Exception => e # rubocop:disable Lint/RescueException -- as below
      raise NoCredentials, e
    end

    # Returns the result of the program's function, or the error that it raises.
    def answer
      @credentials.call
    rescue Exception => e # rubocop:disable Lint/RescueException -- also a call of exit ends no more than this attempt
      e
    end

    # Returns the addresses of the URL's host, in the order in which to try them.
    def addresses(url, failures)
      host, port = Connection.address(url)
      found = ::Timeout.timeout(OPEN_TIMEOUT) { Addrinfo.getaddrinfo(host, port, nil, :STREAM) }
      Hosts.try_order(found.map(&:ip_address).uniq, @address, lost: @lost)
    rescue SocketError, ::Timeout::Error => e
      failures << ["#{host}:#{port}", Connection::Lost.new(e)]
      []
    end
  end

  # The URL that is used if none is given.
  DEFAULT_URL = 'amqp://guest:guest@127.0.0.1:5672/'

  # Splits a URL with several hosts into one URL for each host.
  # @private
  module Urls
    NEXT_URL = %r{,\s*(?=amqps?://)}
    URL = %r{\A(amqps?://)([^/?\#]*)(.*)\z}m
    HOST = /\A([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(.*))?\z/m
    PORTS = { 'amqp://' => 5672, 'amqps://' => 5671 }.freeze

    EMPTY_HOST = "the broker's URL has an empty host: write amqp://user:password@a,b/vhost"
    LATE_AT = "the broker's URL has an @ behind a /, ? or #: write these characters as %40, %2F, %3F and %23"

    module_function

    # Returns a URL for each host of a URL or a list of URLs. Each text may contain several URLs,
    # separated by commas. Raises ArgumentError with the reason, and never with the password.
    def split(urls)
      parts = Array(urls).flat_map { |text| several(text.to_s) }.flat_map { |url| hosts(url.strip) }
      raise ArgumentError, 'no URL of a broker is given' if parts.empty?

      same = parts.map { |before, _, behind| before + (behind == '/' ? '' : behind) }.uniq.one?
      raise ArgumentError, "the broker's URLs may differ in host and port only" unless same

      parts.uniq { |_, host, _| host }.map(&:join).each { |url| Connection.check_url(url) }
    end

    # Returns the URLs of a text that separates them with commas.
    def several(text)
      text.empty? ? [text] : text.split(NEXT_URL, -1)
    end

    # Returns the part of a URL before its hosts, the hosts with their ports, and the part after
    # them.
    def hosts(url)
      scheme, authority, tail = URL.match(url)&.captures
      raise ArgumentError, "the broker's URL must begin with amqp:// or amqps://" unless scheme

      user, at, list = authority.rpartition('@')
      # The comma would become part of the virtual host.
      raise ArgumentError, EMPTY_HOST if url.end_with?(',')
      raise ArgumentError, LATE_AT if at.empty? && tail.include?('@')

      list = 'localhost' if list.empty?
      list.split(',', -1).map { |host| [scheme + user + at, with_port(host.strip, scheme), tail] }
    end

    # Returns a host with its port, or with the default port of the scheme.
    def with_port(text, scheme)
      raise ArgumentError, EMPTY_HOST if text.match?(/\A(:[^:]*)?\z/)

      host, port = HOST.match(text)&.captures
      raise ArgumentError, "the broker's URL has an invalid host: \"#{text}\"#{ipv6_hint(text)}" unless host && ipv6_hint(text).nil?
      return "#{text}:#{PORTS.fetch(scheme)}" unless port
      return text if port.match?(/\A[0-9]{1,5}\z/) && port.to_i.between?(1, 65_535)

      raise ArgumentError, "the port of host \"#{host}\" must be a number from 1 to 65535, not \"#{port}\""
    end

    def ipv6_hint(text)
      ' (an IPv6 address needs brackets)' if text.count(':') > 1 && !text.start_with?('[')
    end
  end
end
