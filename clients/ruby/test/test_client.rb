# frozen_string_literal: true

require_relative 'helper'

# A client without a broker. The conformance suite tests the rest.
class TestClient < Minitest::Test
  include Helper

  def test_unreachable_says_why
    client = Client.new(NOWHERE, timeout: 0.5)
    assert_match(/refused/, assert_raises(Unreachable) { client.enqueue('A') }.message)
    error = assert_raises(BulkError) { client.enqueue_bulk([NewJob.new('A'), NewJob.new('')]) }
    assert_equal [[nil, nil], [Unreachable, Invalid]], [error.jids, error.errors.values.map(&:class)]
    assert_match(/\A2 of 2 jobs were not enqueued, the first is job 0: /, error.message)
    client.close
    assert_raises(Closed) { client.enqueue('A') }
    refute_match(/guest/, client.inspect)
  end

  def test_fail_fast_does_not_wait_for_a_broker
    client = Client.new(NOWHERE, timeout: 60, fail_fast: true)
    started = Wire.ticks
    2.times { assert_match(/refused/, assert_raises(Unreachable) { client.enqueue('A') }.message) }
    error = assert_raises(BulkError) { client.enqueue_bulk([NewJob.new('A'), NewJob.new('B')]) }
    assert_equal [Unreachable, Unreachable], error.errors.values.map(&:class)
    assert_operator Wire.ticks - started, :<, 30
    client.close
  end

  def test_closing_ends_those_who_wait
    client = Client.new(NOWHERE)
    waiting = Thread.new { assert_raises(Error) { client.enqueue('A') } }
    Thread.pass until waiting.stop?
    client.close
    assert_includes [Closed, Unreachable], waiting.value.class
  end

  def test_a_fork_connects_for_itself
    client = Client.new(NOWHERE, timeout: 0.2)
    assert_raises(Unreachable) { client.enqueue('A') }
    pid = fork do
      client.enqueue('A')
    rescue Unreachable
      exit! 7
    end
    assert_equal 7, Process.wait2(pid).last.exitstatus
    client.close
  end

  def test_urls
    ['http://localhost', '', 'amqp://a b'].each { |url| assert_raises(ArgumentError, url) { Client.new(url) } }
  end
end
