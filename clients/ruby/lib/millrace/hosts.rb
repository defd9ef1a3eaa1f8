# frozen_string_literal: true

require 'socket'

module Millrace
  # The hosts of a broker, and which of them took this client last.
  # @private
  class Hosts
    # How many seconds it may take to connect and to log in, each address.
    OPEN_TIMEOUT = 3

    # How many seconds a program may take to give credentials.
    ASK_TIMEOUT = 30

    # The program gave no credentials. It is asked again for the next connection, even if its error looks like a refusal by the broker.
    class NoCredentials < Connection::Lost
      def initialize(error)
        super("credentials: #{error.message[0, 300]} (#{error.class})")
      end
    end

    # No host took us.
    class Unreached < Connection::Lost
      def initialize(failures)
        @failures = failures
        super(failures.map { |address, error| "#{address}: #{error.message}" }.join('; '))
      end

      # Of a round of several hosts, one that said so is enough.
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
      # What was given is not shown: it may be the password itself.
      raise ArgumentError, 'credentials has no method call that returns [username, password]' unless usable

      @lost = false # the last connection has been used: it is gone when the next one is wanted
    end

    # Connects to the first host that takes us, and tries each of them, and each of their addresses, once. Unreached if none does;
    # NoCredentials if the program gives none.
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

    # The order in which to try hosts, or addresses: the last good one first, but last when its connection was just lost; the others
    # in random order.
    def self.try_order(all, good, lost:)
      others = all.shuffle - [good]
      return others unless all.include?(good)

      lost ? [*others, good] : [good, *others]
    end

    private

    # The user of the next connection, as bunny takes it. The program's function has a thread of its own, for it may hang, and
    # interrupting it could break what it holds. While a call still runs there is no other: each would leave a thread.
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

    # What the program's function returns, or the error that it raises.
    def answer
      @credentials.call
    rescue Exception => e # rubocop:disable Lint/RescueException -- also a call of exit ends no more than this attempt
      e
    end

    # The addresses of the host of a URL, in the order in which to try them.
    def addresses(url, failures)
      host, port = Connection.address(url)
      found = ::Timeout.timeout(OPEN_TIMEOUT) { Addrinfo.getaddrinfo(host, port, nil, :STREAM) }
      Hosts.try_order(found.map(&:ip_address).uniq, @address, lost: @lost)
    rescue SocketError, ::Timeout::Error => e
      failures << ["#{host}:#{port}", Connection::Lost.new(e)]
      []
    end
  end

  # The broker where none is named.
  DEFAULT_URL = 'amqp://guest:guest@127.0.0.1:5672/'

  # Makes of a URL with several hosts one URL for each.
  # @private
  module Urls
    NEXT_URL = %r{,\s*(?=amqps?://)}
    URL = %r{\A(amqps?://)([^/?\#]*)(.*)\z}m
    HOST = /\A([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(.*))?\z/m
    PORTS = { 'amqp://' => 5672, 'amqps://' => 5671 }.freeze

    EMPTY_HOST = "the broker's URL has an empty host: write amqp://user:password@a,b/vhost"
    LATE_AT = "the broker's URL has an @ behind a /, ? or #: write these characters as %40, %2F, %3F and %23"

    module_function

    # Gives a URL for each host, of a URL or a list of URLs. Each may be several, with commas between them. ArgumentError says what is
    # wrong, and never shows the password.
    def split(urls)
      parts = Array(urls).flat_map { |text| several(text.to_s) }.flat_map { |url| hosts(url.strip) }
      raise ArgumentError, 'no URL of a broker is given' if parts.empty?

      same = parts.map { |before, _, behind| before + (behind == '/' ? '' : behind) }.uniq.one?
      raise ArgumentError, "the broker's URLs may differ in host and port only" unless same

      parts.uniq { |_, host, _| host }.map(&:join).each { |url| Connection.check_url(url) }
    end

    # Gives the URLs of a text that has commas between them.
    def several(text)
      text.empty? ? [text] : text.split(NEXT_URL, -1)
    end

    # Gives what stands before each host of a URL, the host with its port, and what stands behind.
    def hosts(url)
      scheme, authority, tail = URL.match(url)&.captures
      raise ArgumentError, "the broker's URL must begin with amqp:// or amqps://" unless scheme

      user, at, list = authority.rpartition('@')
      raise ArgumentError, EMPTY_HOST if url.end_with?(',') # it would count as the virtual host's
      raise ArgumentError, LATE_AT if at.empty? && tail.include?('@')

      list = 'localhost' if list.empty?
      list.split(',', -1).map { |host| [scheme + user + at, with_port(host.strip, scheme), tail] }
    end

    # Gives a host with its port, or with that of the scheme.
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
