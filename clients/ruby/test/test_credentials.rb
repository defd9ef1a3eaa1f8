# frozen_string_literal: true

require_relative 'helper'
require_relative 'private_broker'

# Credentials that the broker changes between two connections, and client certificates.
class TestCredentials < Minitest::Test
  include Helper

  WAITING = 'no connection to the broker, trying again: credentials: the vault is sealed: 403 (RuntimeError)'

  def setup
    port = PrivateBroker.port or skip 'RabbitMQ is not installed'
    @url = "amqp://guest:guest@127.0.0.1:#{port}/"
    @tls_url = "amqps://guest:guest@localhost:#{PrivateBroker.tls_port}/"
    @bunny = Bunny.new("#{@url}%2F", logger: Logger.new(nil)).start
    channel = @bunny.create_channel
    channel.direct('jobs.direct', durable: true)
    @queue = "test-#{SecureRandom.hex(4)}"
    channel.queue("queue.#{@queue}", durable: true).bind('jobs.direct', routing_key: @queue)
    @seen = Thread::Queue.new
    @ending = [@bunny.method(:close)]
  end

  def teardown
    @ending&.reverse_each(&:call)
  end

  def client(url, **options)
    Client.new(url, **options).tap { |made| @ending << made.method(:close) }
  end

  # Runs a worker that notes its jobs until the test ends. Returns its log.
  def work(url, **options)
    log = StringIO.new
    logger = Logger.new(log, formatter: ->(severity, _time, _name, line) { "#{severity} #{line}\n" })
    worker = Worker.new(url, queues: [@queue], logger: logger, **options)
    worker.handle('Seen') { |job| @seen << job.args.first }
    running = Thread.new { worker.run }
    @ending << -> { worker.stop and running.join }
    log
  end

  def eventually(what)
    deadline = Wire.ticks + 60
    until yield
      flunk "not within a minute: #{what}" if Wire.ticks > deadline
      sleep 0.02
    end
  end

  def seen
    eventually('a job has run') { !@seen.empty? }
    @seen.pop
  end

  def change_password(user, password)
    PrivateBroker.ctl('change_password', user, password)
    PrivateBroker.ctl('close_all_user_connections', user, 'rotated')
  end

  # Gives a program its credentials.
  class Vault
    attr_accessor :password, :fault
    attr_reader :asked

    def initialize(password)
      @password = password
      @asked = 0
    end

    def call
      @asked += 1
      raise @fault if @fault

      ['rotating', @password]
    end
  end

  # Returns the vault of a user that the broker knows.
  def vault_of_a_user(password)
    PrivateBroker.ctl('add_user', 'rotating', password)
    PrivateBroker.ctl('set_permissions', 'rotating', '.*', '.*', '.*')
    Vault.new(password)
  end

  def test_the_password_changes_between_two_connections
    url = @url.sub('guest:guest@', 'of-the-url:unused@')
    vault = vault_of_a_user('secret-one')
    log = work(url, credentials: vault)
    producer = client(url, credentials: vault)
    producer.enqueue('Seen', ['before'], queue: @queue)
    assert_equal 'before', seen
    assert_equal 2, vault.asked

    # This error looks like the broker's refusal, but comes from the program.
    vault.fault = 'the vault is sealed: 403'
    change_password('rotating', vault.password = 'secret-two')
    eventually('the worker has asked twice in vain') { log.string.scan("WARN #{WAITING}").size >= 2 }
    # A producer that has not noticed the loss publishes the job on the lost connection.
    eventually('the producer says why') do
      error = assert_raises(Unreachable, Unconfirmed) { producer.enqueue('Seen', ['never'], queue: @queue, deadline: 1) }
      error.message.include?('credentials: the vault is sealed: 403')
    end

    vault.fault = nil
    producer.enqueue('Seen', ['after'], queue: @queue)
    assert_equal 'after', seen
    refute_match(/secret-/, log.string)
  end

  # Even `exit` and Thread.exit in the function end only the attempt.
  def test_the_first_attempts_may_fail
    faults = -> { [-> { raise '403' }, -> { exit }, -> { Thread.exit }] }
    give = ->(left) { -> { left.empty? ? %w[guest guest] : left.shift.call } }
    work(@url, credentials: give.call(faults.call))
    client(@url, credentials: give.call(faults.call)).enqueue('Seen', ['late'], queue: @queue)
    assert_equal 'late', seen
  end

  # Limits the time of a call of the function, until the test ends.
  def limit(seconds)
    before = Hosts.send(:remove_const, :ASK_TIMEOUT)
    Hosts.const_set(:ASK_TIMEOUT, seconds)
    @ending << lambda do
      Hosts.send(:remove_const, :ASK_TIMEOUT)
      Hosts.const_set(:ASK_TIMEOUT, before)
    end
  end

  def test_a_function_that_hangs_is_not_called_again
    limit(0.1)
    asked = Thread::Queue.new
    answer = Thread::Queue.new
    hosts = Hosts.new(@url, -> { [asked << true, answer.pop] && %w[guest guest] })
    3.times do
      error = assert_raises(Hosts::NoCredentials) { hosts.open('test') }
      assert_match(/credentials: no answer in 0.1 s/, error.message)
    end
    eventually('it was called') { !asked.empty? }
    assert_equal 1, asked.size
    answer.close
    eventually('it connects') do
      hosts.open('test').close(2)
      true
    rescue Hosts::NoCredentials
      false # no answer in time
    end
  end

  def test_fail_fast_does_not_ask_again
    error = assert_raises(Unreachable) { client(@url, fail_fast: true, credentials: -> { raise 'sealed' }).enqueue('A', []) }
    assert_match(/credentials: sealed \(RuntimeError\)/, error.message)
  end

  def test_a_password_that_is_wrong
    wrong = -> { %w[guest wr0ng] }
    error = assert_raises(Unreachable) { Worker.new(@url, credentials: wrong, logger: nil).run }
    assert_match(/turns us away/, error.message)
    refute_match(/wr0ng/, error.message)
    assert_raises(Unreachable) { client(@url, credentials: wrong).enqueue('A', []) }
  end

  def test_what_is_no_use_is_refused
    [%w[guest s3cret], 'guest:s3cret'].each do |given|
      error = assert_raises(ArgumentError) { Client.new(@url, credentials: given) }
      assert_equal 'credentials has no method call that returns [username, password]', error.message
    end
    [nil, 'ab', ['guest'], ['guest', :s3cret], %w[guest s3cret more]].each do |answer|
      error = assert_raises(Unreachable) { client(@url, fail_fast: true, credentials: -> { answer }).enqueue('A', []) }
      assert_match(/must return \[username, password\], both String/, error.message)
      refute_match(/s3cret/, error.message)
    end
  end

  def test_a_broker_that_demands_a_client_certificate
    ca, certificate, key = %w[ca.pem client.pem client.key].map { |name| File.join(PrivateBroker.folder, name) }
    full = "#{@tls_url}?cacertfile=#{ca}&certfile=#{certificate}&keyfile=#{key}"
    work(full)
    client(full).enqueue('Seen', ['by TLS'], queue: @queue)
    assert_equal 'by TLS', seen
    client(full.sub('guest:guest@', 'a:b@'), credentials: -> { %w[guest guest] }).enqueue('Seen', ['asked'], queue: @queue)
    assert_equal 'asked', seen
    { "#{@tls_url}?cacertfile=#{ca}" => /certificate required|alert|reset|closed|EOF/i, @tls_url => /certificate verify failed/,
      full.sub('localhost', '127.0.0.1') => /certificate verify failed|does not match/ }.each do |url, why|
      other = client(url, fail_fast: true)
      eventually("refused: #{why}") do # an attempt may also take too long
        why.match?(assert_raises(Unreachable) { other.enqueue('Seen', ['never'], queue: @queue) }.message)
      end
    end
  end
end
