# frozen_string_literal: true

require_relative 'helper'
require_relative 'beside_broker'

# Limited jobs: how they are enqueued.
class TestLimitedJobs < Minitest::Test
  include Helper

  # A class whose jobs are limited.
  class Import
    include Millrace::Handler
    millrace_options limited: true

    def perform(*); end
  end

  def prepared(**options)
    _, message = NewJob.new('Import', [1], queue: 'imports', **options).prepare(1.0)
    [message.exchange, message.key, JSON.parse(message.body)]
  end

  def test_a_limited_job_waits_for_its_limits
    { { limited: true } => {}, { limit_key: 'customer-42' } => { 'key' => 'customer-42' },
      { limited: true, limit_key: '' } => {}, { limited: false, limit_key: 'é' * 100 } => { 'key' => 'é' * 100 } }
      .each do |options, gate|
      exchange, key, job = prepared(**options)
      assert_equal ['', 'jobs.gated', gate, 'imports'], [exchange, key, job['gate'], job['queue']]
      exchange, key, record = prepared(at: 9.0, **options)
      assert_equal ['', 'scheduled_jobs', gate], [exchange, key, record['job']['gate']]
    end
    [{}, { limited: false }, { limit_key: nil }, { limit_key: '' }].each do |options|
      exchange, key, job = prepared(**options)
      assert_equal ['jobs.direct', 'imports', false], [exchange, key, job.key?('gate')]
    end
  end

  def test_keys_are_checked
    ['a' * 201, 'é' * 101, "a\nb", "a\u0085", "\xff", 42].each { |key| assert_raises(Invalid) { prepared(limit_key: key) } }
    assert_raises(Invalid) { prepared(limited: 'yes') }
    assert_raises(Invalid) { prepared(fields: { gate: {} }) }
  end

  def test_a_class_may_set_them_for_all_its_jobs
    fake = Testing::Fake.new
    Millrace.stub(:client, fake) do
      Import.perform_async(1)
      Import.set(limit_key: 'k').perform_in(60, 2)
      Import.perform_bulk([[3]])
      Import.set(limited: false).perform_async(4)
    end
    assert_equal([{}, { 'key' => 'k' }, {}, nil], fake.jobs.map(&:gate))
  end

  def test_the_fakes_keep_limits
    imports, all = %w[imports all].map { |name| Limit.new(name, concurrency: 9) }
    poll = PeriodicJob.new('poll', 'Poll', every: 90)
    [Testing::Fake.new, Testing::Inline.new].each do |fake|
      assert_equal %w[poll imports all], fake.define('app', [poll], limits: [imports, all]).made
      changed = Limit.new('all', concurrency: 2)
      did = fake.define('app', limits: [changed])
      assert_equal [[], %w[all], %w[imports], 0], [did.made, did.changed, did.forgotten, did.unchanged]
      assert_equal [[changed], [poll]], [fake.limits('app'), fake.periodic('app')]
      assert_raises(Invalid) { fake.define('app') }
    end
  end
end

# Limited jobs: how they are published, claimed, and reported as ended. A thread answers as a leader
# does.
class TestLimitedDeliveries < Minitest::Test
  include Helper
  include BesideBroker

  SLOT = 'g.7.5.3.abc'
  STATE = { 'status' => 200, 'paused' => [], 'claim_below' => 5 }.freeze
  RUN = { 'status' => 200, 'claim' => 'run' }.freeze
  DROP = { 'status' => 200, 'claim' => 'drop' }.freeze

  def setup
    super
    @ends = queue('jobs.ends').tap(&:purge)
    @seen = Thread::Queue.new
  end

  # Runs a worker whose leader gives the replies in order; nil is no answer. The block gets the
  # commands, the worker and its log.
  def deliveries(*replies, **options)
    leading(*replies) do |commands|
      working(**options) do |worker, log|
        worker.handle('Note') { |job| @seen << job.jid }
        worker.handle('Fail') { raise KeyError, 'x' }
        start(worker)
        eventually('it asks for the state') { commands.any? } unless replies.empty?
        yield commands, worker, log
      end
    end
  end

  # Delivers a job as the leader does, with a slot.
  def deliver(job_class, jid, body: nil, **headers)
    headers = { 'millrace-slot' => SLOT, 'millrace-epoch' => 5, **headers.transform_keys { |name| name.to_s.tr('_', '-') } }
    body ||= JSON.generate({ class: job_class, jid: jid })
    @channel.default_exchange.publish(body, routing_key: @jobs.name, message_id: jid, headers: headers)
  end

  def check_end(worker)
    _, properties, body = messages(@ends, 1).first
    record = JSON.parse(body)
    assert_in_delta Wire.now, record.delete('at'), 60
    assert_equal({ 'type' => 'ended', 'slot' => SLOT, 'process' => worker.identity }, record)
    assert_equal 2, properties.delivery_mode
  end

  def test_a_limited_job_goes_to_jobs_gated
    gated = queue('jobs.gated').tap(&:purge)
    client.enqueue('A', [], queue: @queue, limit_key: 'k', priority: 4)
    client.enqueue_bulk([NewJob.new('A', [], queue: @queue, limited: true)])
    arrived = messages(gated, 2).map { |_, properties, body| [JSON.parse(body)['gate'], properties.priority, properties.delivery_mode] }
    assert_equal [[{ 'key' => 'k' }, 4, 2], [{}, 0, 2]], arrived
    assert_equal 0, @jobs.message_count
  end

  def test_limits_are_defined_beside_periodic_jobs
    leading({ 'status' => 200, 'defined' => { 'made' => ['imports'] } }, { 'status' => 200 }) do |commands|
      limit = Limit.new('imports', queues: ['imports'], classes: [TestLimitedJobs::Import], per: [:key], concurrency: 3, paused: true,
                                   rate: { jobs: 100, seconds: 60, burst: 1 }, overrides: { 'customer-42' => { concurrency: 10 } })
      assert_equal %w[imports], client.define('billing', limits: [limit]).made
      defined = { 'name' => 'imports', 'queues' => ['imports'], 'classes' => ['TestLimitedJobs::Import'], 'per' => ['key'],
                  'concurrency' => 3, 'rate' => { 'jobs' => 100, 'seconds' => 60, 'burst' => 1 },
                  'overrides' => { 'customer-42' => { 'concurrency' => 10 } }, 'paused' => true }
      assert_equal({ 'source' => 'billing', 'limits' => [defined] }, commands.last['definitions'])
      @client.define('billing', [PeriodicJob.new('poll', 'Poll', every: 90, limit_key: 'k')], limits: [])
      job = { 'class' => 'Poll', 'args' => [], 'queue' => 'default', 'gate' => { 'key' => 'k' } }
      poll = { 'name' => 'poll', 'every' => 90, 'job' => job }
      assert_equal({ 'source' => 'billing', 'periodic_jobs' => [poll], 'limits' => [] }, commands.last['definitions'])
      assert_raises(Invalid) { @client.define('billing') }
    end
  end

  def test_the_end_of_a_job_is_reported
    deliveries(STATE) do |commands, worker|
      [['Note', nil, 0], ['Fail', nil, 1], ['', 'no job', 1]].each do |job_class, body, retries|
        deliver(job_class, job_class, body: body)
        check_end(worker)
        assert_equal retries, @sets['retries'].message_count, 'the record is there already'
      end
      client.enqueue('Note', [], queue: @queue, jid: 'unlimited')
      assert_equal %w[Note unlimited], [pop(@seen), pop(@seen)]
      assert_equal(['state'], commands.map { |command| command['command'] })
    end
    assert_equal [0, 0], [@ends.message_count, @jobs.message_count]
  end

  def test_the_end_is_reported_before_the_acknowledgement
    @ends.delete
    [['Note', nil, 0], ['Fail', nil, 1], ['', 'no job', 0]].each do |job_class, body, retries|
      deliveries(STATE, stop_timeout: 0.1) do |_, _, log|
        deliver(job_class, job_class, body: body)
        eventually('it is tried') { log.string.match?(/^ERROR the broker does not take that a job has ended.* slot=#{SLOT} /o) }
      end
      assert_equal retries, @sets['retries'].message_count
      messages(@jobs, 1) # not acknowledged
      @sets['retries'].purge
    end
  end

  def test_without_its_record_no_end_is_reported
    @sets['retries'].delete
    deliveries(STATE, stop_timeout: 0.1) do |_, _, log|
      deliver('Fail', 'j')
      eventually('it is tried') { log.string.include?('does not take what became of a job') }
    end
    messages(@jobs, 1)
    assert_equal 0, @ends.message_count
  end

  def test_a_job_that_may_have_begun_is_claimed
    deliveries(STATE, RUN, RUN, RUN) do |commands, worker|
      claimed = { 'fired' => {}, 'asked' => { millrace_claim: '1' }, 'refired' => { millrace_op: 'refired' },
                  'earlier' => { millrace_epoch: 4 } }
      claimed.each do |jid, headers|
        deliver('Note', jid, **headers)
        check_end(worker)
        assert_equal jid, pop(@seen)
        assert_equal 1, commands.size if jid == 'fired'
      end
      assert_equal [{ 'command' => 'claim', 'slot' => SLOT, 'process' => worker.identity }], commands.drop(1).uniq
      assert_equal claimed.size, commands.size
    end
  end

  def test_a_job_that_is_dropped_is_acknowledged_and_not_run
    deliver('Note', 'again')
    @bunny.create_channel.tap { |other| eventually('it is delivered') { other.basic_get(@jobs.name, manual_ack: true).first } }.close
    metrics = queue('job_metrics').tap(&:purge)
    deliveries(STATE, DROP) do |commands, worker|
      eventually('it is claimed') { commands.size == 2 }
      deliver('Note', 'fired')
      check_end(worker)
    end
    assert_equal [0, 0, ['fired']], [@jobs.message_count, @ends.message_count, Array.new(@seen.size) { @seen.pop }]
    refute_match(/again/, Array.new(metrics.message_count) { metrics.pop.last }.join)
  end

  def test_a_claim_is_repeated_until_it_is_answered
    replies = [STATE, nil, { 'status' => 503, 'reason' => 'busy' }, { 'status' => 500 }, RUN]
    deliveries(*replies) do |commands, worker|
      deliver('Note', 'late', millrace_claim: '1')
      check_end(worker)
      assert_equal replies.size, commands.size
    end
    assert_equal 'late', pop(@seen)
  end

  def test_a_job_without_an_answer_is_handed_back
    deliveries do |_, worker|
      deliver('Note', 'waits')
      eventually('it is claimed') { worker.settler.running.any? }
      sleep 0.3
    end
    messages(@jobs, 1)
    assert_equal [0, 0], [@seen.size, @ends.message_count]
  end
end
