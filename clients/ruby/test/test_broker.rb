# frozen_string_literal: true

require_relative 'helper'
require_relative 'beside_broker'

# Clients and workers with a real broker, without a sidecar: queues stand for its streams.
class TestBroker < Minitest::Test
  include Helper
  include BesideBroker

  def test_a_url_with_a_trailing_slash
    jid = client.enqueue('A', [1], queue: @queue)
    _, properties, body = messages(@jobs, 1).first
    assert_equal [jid, [1]], [properties.message_id, JSON.parse(body)['args']]
  end

  def test_middleware_leaves_a_bulk_enqueue_pipelined
    slow = slow_client
    slow.use { |job, next_one| next_one.call(job) }
    bulk = nil
    @network.without_answers do
      bulk = Thread.new { slow.enqueue_bulk(Array.new(100) { |i| NewJob.new('A', [i], queue: @queue) }) }
      eventually('all jobs are sent while none is confirmed') { @jobs.message_count == 101 }
      assert_predicate bulk, :alive?
    end
    arrived = messages(@jobs, 101).drop(1).map { |_, properties, _| properties.message_id }
    assert_equal arrived, bulk.value
  end

  def test_an_unconfirmed_job_says_its_jid
    slow = slow_client
    one, many = @network.without_answers do
      [assert_raises(Unconfirmed) { slow.enqueue('A', ['x'], queue: @queue, deadline: 0.5) },
       assert_raises(BulkError) { slow.enqueue_bulk([NewJob.new('A', ['y'], queue: @queue)], deadline: 0.5) }.errors.fetch(0)]
    end
    assert_instance_of Unconfirmed, many
    assert_match(/\Ajob #{one.jid} may or may not be enqueued/, one.message)
    assert_equal one.jid, slow.enqueue('A', ['x'], queue: @queue, jid: one.jid)
    arrived = messages(@jobs, 4).drop(1).map { |_, properties, _| properties.message_id }
    assert_equal [one.jid, many.jid, one.jid], arrived
  end

  def test_a_job_that_was_sent_is_unconfirmed_when_the_client_is_closed
    slow = slow_client
    errors = @network.without_answers do
      enqueuing = Thread.new { assert_raises(Unconfirmed) { slow.enqueue('A', [], queue: @queue, jid: 'one') } }
      many = Thread.new { assert_raises(BulkError) { slow.enqueue_bulk([NewJob.new('A', [], queue: @queue, jid: 'many')]) } }
      eventually('both jobs are sent') { @jobs.message_count == 3 }
      slow.close
      [enqueuing.value, many.value.errors.fetch(0)]
    end
    assert_equal([[Unconfirmed, 'one'], [Unconfirmed, 'many']], errors.map { |error| [error.class, error.jid] })
    arrived = messages(@jobs, 3).drop(1).map { |_, properties, _| properties.message_id }
    assert_equal %w[many one], arrived.sort
  end

  # Enqueues a job that fails, and checks its record in the queue for it.
  def fail_once(set, **options)
    client.enqueue('Fails', [], queue: @queue, **options)
    record = JSON.parse(messages(@sets.fetch(set), 1).first.last)
    assert_equal 'KeyError', record['error_class']
    assert_match(/test_broker\.rb/, record['backtrace'])
  end

  def test_hooks_of_a_failure_are_called_before_its_record_is_published
    seen = Thread::Queue.new
    asking = @bunny.create_channel # a thread may not use the channel of another
    written = -> { @sets.keys.map { |name| asking.queue_declare(name, passive: true).message_count } }
    working do |worker, _log|
      worker.on(:failure) { |_job, error| seen << [:failure, error.class, written.call] }
      worker.on(:failure) { raise 'a hook that fails' }
      worker.on(:death) { |_job, error| seen << [:death, error.class] }
      worker.handle('Fails') { raise KeyError, 'no such order' }
      start(worker)
      fail_once('retries')
      fail_once('dead_jobs', retry: 0)
      eventually('the death hook') { seen.size == 3 }
    end
    assert_equal [[:failure, KeyError, [0, 0, 0]], [:failure, KeyError, [0, 0, 0]], [:death, KeyError]], Array.new(3) { seen.pop }
  end

  def test_what_a_worker_logs
    said = working do |worker, log|
      worker.on(:failure) { raise 'a hook that fails' }
      worker.handle('Fails') { raise KeyError, 'no such order' }
      start(worker)
      fail_once('retries')
      fail_once('dead_jobs', retry: 0)
      refute_match(/worker stopped/, log.string)
    end
    [/^INFO worker started version=\S+ identity=\S+ queues=#{@queue} concurrency=2$/,
     /^WARN job failed class=Fails jid=\h+ queue=#{@queue} attempt=1 next=retry retry_at=\S+ error_class=KeyError .*\n    .*test_broker/,
     /^WARN job failed class=Fails .* next=dead error_class=KeyError error="no such order"\n    .*test_broker/,
     /^ERROR hook failed hook=failure error_class=RuntimeError error="a hook that fails"\n    .*test_broker/,
     /^INFO worker stopped identity=/].each { |line| assert_match line, said }
  end

  # A hook or a backoff that ended the thread left the job unacknowledged, or rejected it.
  def test_hooks_and_backoffs_that_end_their_thread
    said = working do |worker, _log|
      worker.on(:failure) { |job| Thread.exit if job.job_class == 'Hook' }
      backoffs = { 'Hook' => nil, 'Backoff' => ->(*) { Thread.exit }, 'Exit' => ->(*) { exit } }
      backoffs.each { |name, retry_in| worker.handle(name, retry_in: retry_in) { raise KeyError, 'x' } }
      start(worker)
      backoffs.each_key { |name| client.enqueue(name, [], queue: @queue) }
      records = messages(@sets['retries'], 3).map { |message| JSON.parse(message.last) }
      assert_equal({ 'Hook' => 'KeyError', 'Backoff' => 'ThreadEnded', 'Exit' => 'KeyError' },
                   records.to_h { |record| [record['job']['class'], record['error_class']] })
    end
    assert_match(/^WARN retry_in failed, the default backoff is used class=Exit .* error_class=SystemExit/, said)
  end

  def test_why_a_handler_should_end
    ends = Thread::Queue.new
    working(stop_timeout: 0.2) do |worker, _log|
      worker.handle('Waits', timeout: 0.2) do |job|
        job.wait(0.05) until job.cancelled?
        ends << job.end
      end
      start(worker)
      client.enqueue('Waits', [], queue: @queue)
      assert_equal :timeout, pop(ends)
      client.enqueue('Waits', [], queue: @queue, timeout: 60)
      eventually('it runs') { @jobs.message_count.zero? && worker.settler.running.any? }
    end
    assert_equal :stopping, pop(ends)
  end

  def test_a_job_that_is_handed_back_is_logged
    said = working do |worker, _log|
      worker.handle('Waits') { |job| raise HandBack if job.wait(60) }
      start(worker)
      client.enqueue('Waits', [], queue: @queue)
      eventually('it runs') { worker.settler.running.any? }
    end
    assert_match(/^INFO job handed back class=Waits jid=\h+ queue=#{@queue} attempt=1$/, said)
    assert_equal 'Waits', JSON.parse(messages(@jobs, 1).first.last)['class']
  end

  def test_a_handler_that_hangs_is_logged_and_its_job_handed_back
    hang = Thread::Queue.new
    said = working(stop_timeout: 0.1) do |worker, log|
      worker.handle('Hangs', timeout: 0.1) { hang.pop }
      start(worker)
      client.enqueue('Hangs', [], queue: @queue)
      eventually('the timeout is logged') { log.string.include?('over its timeout') }
    end
    assert_match(/^WARN job is over its timeout and still running class=Hangs jid=\h+ queue=#{@queue} attempt=1 timeout=0.1s$/, said)
    assert_match(/^WARN job handed back, its handler did not end within the stop timeout class=Hangs jid=\h+/, said)
    assert_equal 'Hangs', JSON.parse(messages(@jobs, 1).first.last)['class']
  ensure
    hang << true
  end
end
