# frozen_string_literal: true

require_relative 'helper'
require_relative 'beside_broker'

# Governed queues: how they are defined.
class TestGovernedQueues < Minitest::Test
  include Helper

  def test_errors_say_what_is_wrong
    { { max_waiting: 0 } => /"imports": max_waiting must be a whole number from 1 to 1000000000/,
      { ahead: 1.5 } => /ahead must be a whole number/,
      { weights: { 'a' => '1' } } => /the weight of key "a" must be a whole number from 1 to 1000/,
      { key: '.0' } => /key must be a path into the job, such as args.0.customer_id/ }.each do |members, text|
      assert_match text, assert_raises(Invalid) { GovernedQueue.new('imports', **members).definition }.message
    end
  end

  def test_the_fakes_keep_queues
    imports, mails = %w[imports mails].map { |name| GovernedQueue.new(name, ahead: 9) }
    limit = Limit.new('a', concurrency: 9)
    [Testing::Fake.new, Testing::Inline.new].each do |fake|
      assert_equal %w[a imports mails], fake.define('app', limits: [limit], queues: [imports, mails]).made
      changed = GovernedQueue.new('mails', ahead: 2)
      did = fake.define('app', queues: [changed])
      assert_equal [[], %w[mails], %w[imports], 0], [did.made, did.changed, did.forgotten, did.unchanged]
      assert_raises(Invalid) { fake.define('app', queues: [GovernedQueue.new('')]) }
      assert_equal [[changed], [limit], []], [fake.queues('app'), fake.limits('app'), fake.periodic('app')]
    end
  end
end

# Governed queues: how their definitions are sent, and what a producer hears of a full one.
class TestGovernedQueuesBeside < Minitest::Test
  include Helper
  include BesideBroker

  def test_queues_are_defined_beside_limits
    leading({ 'status' => 200, 'defined' => { 'made' => ['imports'] } }, { 'status' => 200 }) do |commands|
      imports = GovernedQueue.new('imports', key: 'args.0.customer_id', max_waiting: 100_000, weights: { 'customer-42' => 3 }, ahead: 20,
                                             paused: true)
      assert_equal %w[imports], client.define('billing', queues: [imports]).made
      defined = { 'name' => 'imports', 'key' => 'args.0.customer_id', 'max_waiting' => 100_000, 'weights' => { 'customer-42' => 3 },
                  'ahead' => 20, 'paused' => true }
      assert_equal({ 'source' => 'billing', 'queues' => [defined] }, commands.last['definitions'])
      @client.define('billing', limits: [], queues: [])
      assert_equal({ 'source' => 'billing', 'limits' => [], 'queues' => [] }, commands.last['definitions'])
    end
  end

  def test_a_job_for_a_full_queue_is_refused
    full = @channel.queue('jobs.full', durable: true, arguments: { 'x-max-length' => 0, 'x-overflow' => 'reject-publish' })
    full.bind('jobs.direct', routing_key: 'full')
    error = assert_raises(Refused) { client.enqueue('Import', [], queue: 'full') }
    assert_match(/the queue is full or unavailable, try again later/, error.message)
    full.unbind('jobs.direct', routing_key: 'full')
    @jobs.bind('jobs.direct', routing_key: 'full')
    assert_equal 'taken', @client.enqueue('Import', [], queue: 'full', jid: 'taken')
    messages(@jobs, 1)
  end
end
