# frozen_string_literal: true

require_relative 'helper'
require_relative 'beside_broker'
require 'millrace/testing'

# Periodic jobs that a client defines, with a thread that takes commands as a leader does.
class TestPeriodic < Minitest::Test
  include Helper
  include BesideBroker

  NIGHTLY = Millrace::PeriodicJob.new(
    'nightly', 'Report', ['daily', 2**60], cron: '0 3 * * *', tz: 'Europe/Stockholm', queue: 'reports', retry: 2, jitter: 1.5,
                                           expires_in: 3600, grace: 0, catch_up: :all, catch_up_max: 7, overlap: :skip,
                                           except: ['2026-12-24'], paused: true
  )

  def test_periodic_jobs_are_defined
    did = { 'made' => ['nightly'], 'changed' => [], 'forgotten' => ['old'], 'unchanged' => 1 }
    leading({ 'status' => 200, 'defined' => did }) do |commands|
      defined = client.define('billing', [NIGHTLY, PeriodicJob.new('poll', 'Poll', every: 90)])
      assert_equal [%w[nightly], [], %w[old], 1], [defined.made, defined.changed, defined.forgotten, defined.unchanged]
      assert_equal 'define', commands.first['command']
      job = { 'class' => 'Report', 'args' => ['daily', 2**60], 'queue' => 'reports', 'retry' => 2 }
      nightly = { 'name' => 'nightly', 'job' => job, 'cron' => '0 3 * * *', 'tz' => 'Europe/Stockholm', 'jitter' => 1.5,
                  'expires_in' => 3600, 'grace' => 0, 'catch_up' => 'all', 'catch_up_max' => 7, 'overlap' => 'skip',
                  'except' => ['2026-12-24'], 'paused' => true }
      poll = { 'name' => 'poll', 'every' => 90, 'job' => { 'class' => 'Poll', 'args' => [], 'queue' => 'default' } }
      assert_equal({ 'source' => 'billing', 'periodic_jobs' => [nightly, poll] }, commands.first['definitions'])
    end
  end

  def test_define_says_why_not
    leading(*[400, 409].map { |status| { 'status' => status, 'reason' => "why #{status}" } }) do
      client
      assert_match 'why 400', assert_raises(Invalid) { @client.define('a', [NIGHTLY]) }.message
      assert_match 'why 409', assert_raises(Refused) { @client.define('a', [NIGHTLY]) }.message
    end
    [PeriodicJob.new('a', ''), PeriodicJob.new('a', 'A', jid: 'j'), PeriodicJob.new('a', 'A', crn: '@daily')].each do |wrong|
      assert_raises(Invalid) { @client.define('a', [wrong]) }
    end
    @client.close
    assert_raises(Closed) { @client.define('a', []) }
  end

  def test_a_command_without_an_answer_is_sent_again_with_its_id
    leading(nil, { 'status' => 503, 'reason' => 'busy' }, { 'status' => 204, 'repeated' => true }) do |commands|
      assert_empty client.define('a', [NIGHTLY]).made
      assert_equal [3, 1], [commands.size, commands.map { |command| command['id'] }.uniq.size]
    end
  end

  def test_without_a_leader
    assert_match 'no sidecar leads', assert_raises(Refused) { client.define('a', [NIGHTLY], deadline: 1) }.message
    leading { assert_raises(Unconfirmed) { client.define('a', [NIGHTLY], deadline: 1) } }
    assert_raises(Unreachable) { client('amqp://127.0.0.1:1').define('a', [NIGHTLY], deadline: 1) }
  end

  def test_helpers_keep_periodic_jobs
    [Testing::Fake.new, Testing::Inline.new].each do |fake|
      a = PeriodicJob.new('a', 'A', every: 60)
      b = PeriodicJob.new('b', 'B', cron: '@daily')
      assert_equal %w[a b], fake.define('app', [a, b]).made
      assert_equal [a, b], fake.periodic('app')
      changed = PeriodicJob.new('a', 'A', every: 60, paused: true)
      did = fake.define('app', [changed])
      assert_equal [[], %w[a], %w[b], 0], [did.made, did.changed, did.forgotten, did.unchanged]
      assert_raises(Invalid) { fake.define('app', [PeriodicJob.new('c', '')]) }
      assert_equal [changed], fake.periodic('app')
      assert_empty fake.periodic('other')
    end
  end
end
