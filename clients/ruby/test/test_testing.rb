# frozen_string_literal: true

require_relative 'helper'

# Handler classes and the clients without a broker.
class TestTesting < Minitest::Test
  include Helper

  # Notes its arguments.
  class Note
    include Millrace::Handler
    millrace_options queue: 'notes', retry: 5, timeout: 30
    millrace_retry_in { |count, _error, _job| count }
    SEEN = [] # rubocop:disable Style/MutableConstant

    def perform(*args)
      SEEN << [job.job_class, job.queue, *args]
    end
  end

  # Inherits the options of its parent.
  class Renamed < Note
    millrace_class 'note.renamed'
    millrace_options queue: 'others'
  end

  def setup
    Note::SEEN.clear
    @worker = Worker.new(NOWHERE)
    @worker.handle('Block') { |job| Note::SEEN << job.args }
  end

  def teardown
    Millrace.client = nil
  end

  def test_inline
    client = Testing::Inline.new(@worker)
    assert_equal 32, client.enqueue('Block', ['é'.encode('ISO-8859-1')]).size
    assert_equal [['é']], Note::SEEN, 'args went through JSON'
    assert_raises(UnknownClass) { client.enqueue('Unhandled') }
    assert_raises(Invalid) { client.enqueue('Block', [Object.new]) }
    client.close
  end

  def test_fake
    client = Testing::Fake.new(@worker)
    client.enqueue('Block', ['now'])
    client.enqueue_at(12.5, 'Block', ['later'], fields: { 'x' => { 'job' => 1 } })
    client.enqueue_bulk([NewJob.new('Block', ['many'])])
    assert_equal [nil, 12.5, nil], client.jobs.map(&:at)
    assert_equal ['Block', ['now']], [client.jobs.first.job_class, client.jobs.first.args]
    assert_equal 3, client.drain
    assert_equal [['now'], ['later'], ['many']], Note::SEEN
    client.enqueue('Block')
    client.clear
    assert_equal 0, client.drain
  end

  def test_handler_classes
    client = Millrace.client = Testing::Fake.new
    Note.perform_async('a', 1)
    Note.set(queue: 'x', priority: 2).perform_in(60, 'b')
    Note.perform_at(Time.at(5), 'c')
    Renamed.perform_bulk([['d'], ['e']])
    Millrace.enqueue(Note, ['f'])
    Millrace.enqueue_in(5, 'note.renamed', ['g'])
    name = 'TestTesting::Note'
    assert_equal [name, name, name, 'note.renamed', 'note.renamed', name, 'note.renamed'], client.jobs.map(&:job_class)
    assert_equal [5, 30], client.jobs[3].job.members.values_at('retry', 'timeout')
    client.drain
    assert_equal [[name, 'notes', 'a', 1], [name, 'x', 'b'], [name, 'notes', 'c'], ['note.renamed', 'others', 'd'],
                  ['note.renamed', 'others', 'e'], [name, 'notes', 'f'], ['note.renamed', 'default', 'g']], Note::SEEN
  end

  def test_a_worker_finds_handler_classes
    entry = @worker.handler('TestTesting::Note')
    assert_equal [7, 30], [entry.retry_in.call(7, nil, nil), entry.timeout]
    assert_equal 7, @worker.handler('note.renamed').retry_in.call(7, nil, nil)
    assert_nil @worker.handler('TestTesting')
  end

  def test_args_that_are_no_array
    @worker.handler('TestTesting::Note').run(job('{"class":"A","args":{"a":1}}'))
    assert_equal [['A', 'q', { 'a' => 1 }]], Note::SEEN
  end

  def test_client_middleware
    client = Testing::Fake.new
    client.use do |job, next_one|
      job.options[:queue] = 'changed'
      job.args.size < 2 ? next_one.call : nil
    end
    client.use { |job, next_one| next_one.call(job) }
    assert_nil client.enqueue('Block', [1, 2])
    refute_nil client.enqueue('Block', [1])
    assert_equal(['changed'], client.jobs.map { |enqueued| enqueued.job.queue })
  end

  # The result of middleware is its own. The client returns the jid.
  def test_client_middleware_returns_what_it_likes
    client = Testing::Fake.new
    client.use do |job, next_one|
      next_one.call
      job.job_class.to_sym
    end
    jids = [client.enqueue('Block'), *client.enqueue_bulk([NewJob.new('Block'), NewJob.new('Block')])]
    assert_equal client.jobs.map { |enqueued| enqueued.job.jid }, jids
  end

  def test_fields_can_be_read_in_handlers_and_middleware
    tenants = []
    @worker.use do |job, next_one|
      tenants << job.fields['tenant']
      next_one.call
    end
    @worker.handle('Tenant') { |job| tenants << job.fields.fetch('tenant') }
    Testing::Inline.new(@worker).enqueue('Tenant', fields: { tenant: 'acme' })
    assert_equal %w[acme acme], tenants
  end

  # Fails as often as its argument says, and ends early if it can.
  class Flaky
    include Millrace::Handler
    millrace_options retry: 3, timeout: 30

    def perform(failures)
      raise Millrace::HandBack if job.stopping?
      raise KeyError, 'cut short' if job.wait(0)
      raise KeyError, "attempt #{job.attempt}" if job.attempt <= failures
    end
  end

  def hooked
    seen = []
    %i[failure death].each { |event| @worker.on(event) { |job, error| seen << [event, job.attempt, error.message] } }
    seen
  end

  def test_why_a_handler_should_end
    ends = []
    @worker.handle('Ends', timeout: 30) { |job| ends << job.end }
    %i[cancelled timeout stopping].each do |signal|
      client = Testing::Fake.new(@worker)
      client.enqueue('Ends')
      client.drain(signal: signal)
    end
    assert_equal [:cancelled, :timeout, nil], ends, 'a stop alone ends nothing yet'
  end

  def test_the_jobs_of_a_class
    client = Millrace.client = Testing::Fake.new
    Note.perform_async('a')
    Renamed.perform_bulk([['b'], ['c']])
    [Renamed, 'note.renamed'].each { |job_class| assert_equal([['b'], ['c']], client.jobs(job_class).map(&:args)) }
    assert_equal [['a']], client.jobs(Note).map(&:args)
    assert_empty client.jobs('Unknown')
  end

  def test_retries_and_dead_jobs_of_a_class
    client = Testing::Fake.new(@worker)
    @worker.handle('Fails') { raise KeyError, 'no' }
    client.enqueue(Flaky, [9])
    client.enqueue('Fails', retry: 0)
    assert_raises(Testing::Failures) { client.drain }
    assert_equal [1, 0, 1], [client.retries(Flaky).size, client.dead(Flaky).size, client.dead('Fails').size]
  end

  def test_a_discard_ends_well_and_draining_continues
    @worker.handle('Discard') { raise Discard, 'paid already' }
    @worker.handle('Dropped', retry_in: ->(*) { :discard }) { raise 'no' }
    seen = hooked
    client = Testing::Fake.new(@worker)
    %w[Discard Dropped Block].each { |name| client.enqueue(name) }
    assert_equal [3, [[]], []], [client.drain, Note::SEEN, client.retries]
    assert_equal [[:failure, 1, 'no']], seen
    refute_nil Testing::Inline.new(@worker).enqueue('Discard')
  end

  def test_drain_runs_all_jobs_and_raises_what_they_failed_with
    client = Testing::Fake.new(@worker)
    client.enqueue(Flaky, [9])
    client.enqueue('Block', ['behind'])
    assert_equal 'attempt 1', assert_raises(KeyError) { client.drain }.message
    assert_equal [['behind']], Note::SEEN
    2.times { client.enqueue(Flaky, [9]) }
    client.enqueue('Unknown')
    error = assert_raises(Testing::Failures) { client.drain }
    assert_equal [KeyError, KeyError, UnknownClass], error.errors.map(&:class)
    assert_match(/\A3 jobs failed:\n  KeyError: attempt 1\n  KeyError: attempt 1\n  Millrace::UnknownClass: no handler/, error.message)
    assert_equal([2, 2, 2, 2], client.retries.map { |enqueued| enqueued.job.attempt })
    client.clear
    assert_equal [0, []], [client.drain(retries: true), client.retries]
  end

  def test_retries_run_until_a_job_ends_well
    seen = hooked
    client = Testing::Fake.new(@worker)
    jid = client.enqueue(Flaky, [2], fields: { x: '"retry_count":0' })
    assert_raises(KeyError) { client.drain }
    waiting = client.retries.first
    assert_equal [jid, 2, 'attempt 1'], [waiting.job.jid, waiting.job.attempt, waiting.error.message]
    assert_operator waiting.at, :>, Time.now.to_f
    assert_equal 2, client.drain(retries: true)
    assert_equal [[], []], [client.retries, client.dead]
    assert_equal [[:failure, 1, 'attempt 1'], [:failure, 2, 'attempt 2']], seen
  end

  def test_death
    seen = hooked
    client = Testing::Fake.new(@worker)
    client.enqueue(Flaky, [9])
    assert_equal 'attempt 4', assert_raises(KeyError) { client.drain(retries: true) }.message
    assert_equal [[4, 'attempt 4']], (client.dead.map { |enqueued| [enqueued.job.attempt, enqueued.error.message] })
    assert_equal [:death, 4, 'attempt 4'], seen.last
    @worker.handle('Kill') { raise Kill, 'no such order' }
    client.enqueue('Kill')
    assert_raises(Kill) { client.drain }
    assert_equal [[:failure, 1, 'no such order'], [:death, 1, 'no such order']], seen.last(2)
  end

  def test_a_timeout
    client = Testing::Fake.new(@worker)
    client.enqueue(Flaky, [0])
    assert_equal 'ran longer than 30 s', assert_raises(Millrace::Timeout) { client.drain(signal: :timeout) }.message
    @worker.handle('Wait', timeout: 0.01) { |job| raise 'cut short' if job.wait(60) }
    assert_raises(Millrace::Timeout) { Testing::Inline.new(@worker).enqueue('Wait') }
    client.enqueue('Block')
    assert_match(/Block has no timeout/, assert_raises(ArgumentError) { client.drain(signal: :timeout) }.message)
    assert_raises(ArgumentError) { client.drain(signal: :nonsense) }
  end

  def test_a_cancelled_job_and_a_worker_that_stops
    client = Testing::Fake.new(@worker)
    client.enqueue(Flaky, [0])
    assert_equal [1, [], []], [client.drain(signal: :stopping), client.retries, client.dead]
    assert_equal 1, client.jobs.size, 'it was handed back'
    refute_predicate client.jobs.first.job, :stopping?
    assert_equal [1, [], [], []], [client.drain(signal: :cancelled), client.jobs, client.retries, client.dead]
  end

  def test_worker_middleware
    seen = []
    @worker.use do |job, next_one|
      seen << job.job_class
      next_one.call
    end
    @worker.use(lambda do |_job, next_one|
      seen << 'inner'
      next_one.call
    end)
    Testing::Inline.new(@worker).enqueue('Block', [1])
    assert_equal [%w[Block inner], [[1]]], [seen, Note::SEEN]
  end
end
