# frozen_string_literal: true

require_relative 'helper'
require_relative 'beside_broker'

# Jobs that the broker returns because no queue takes them.
class TestReturned < Minitest::Test
  include BesideBroker

  def setup
    super
    @later = "later-#{@queue}"
  end

  def returned(times)
    eventually("the broker has returned #{times} times") { @network.returns >= times }
  end

  # Binds a queue, so that jobs for it arrive.
  def bind(name)
    queue("queue.#{name}").bind('jobs.direct', routing_key: name)
  end

  def test_a_returned_job_is_published_again
    watched = watched_client
    one = Thread.new { watched.enqueue('A', [], queue: @later, jid: 'j0') }
    jobs = [@later, @queue, @later].each_with_index.map { |queue, i| NewJob.new('A', [], queue: queue, jid: "j#{i + 1}") }
    many = Thread.new { watched.enqueue_bulk(jobs) }
    messages(@jobs, 1) # the returned job delays none of the others
    returned(2)
    later = bind(@later)
    assert_equal ['j0', %w[j1 j2 j3]], [one.value, many.value]
    arrived = messages(later, 3).map { |_, properties, _| properties.message_id }
    assert_equal %w[j0 j1 j3], arrived.sort
    assert_equal [0, 0], [@jobs, later].map(&:message_count)
  end

  def test_a_job_that_is_returned_to_the_last_is_refused
    one = assert_raises(Refused) { client.enqueue('A', [], queue: @later, deadline: 2) }
    jobs = [@later, @queue].map { |queue| NewJob.new('A', [], queue: queue) }
    many = assert_raises(BulkError) { @client.enqueue_bulk(jobs, deadline: 2) }
    assert_match(/\A312 NO_ROUTE: .*#{@later}.*; tried for \d/, one.message)
    assert_equal [0], many.errors.keys
    assert_equal [Refused, Refused], [one, many.errors[0]].map(&:class)
  end

  def test_a_client_that_is_closed_between_tries_has_not_enqueued
    error = nil
    5.times do # on a busy machine the next try may have begun
      watched = watched_client
      enqueuing = Thread.new { assert_raises(Error) { watched.enqueue('A', [], queue: @later) } }
      returned(4)
      watched.close
      error = enqueuing.value
      break unless error.is_a?(Unconfirmed)
    end
    assert_instance_of Closed, error
  end
end
