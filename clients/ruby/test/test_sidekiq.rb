# frozen_string_literal: true

require_relative 'helper'
require 'millrace/sidekiq'
require 'millrace/sidekiq/testing'

# Job classes that were written for Sidekiq. The library's own producer for tests decides what
# becomes of their jobs, as a worker does.
class TestSidekiq < Minitest::Test # rubocop:disable Metrics/ClassLength -- one set of job classes for all tests
  include Helper

  SEEN = [] # rubocop:disable Style/MutableConstant

  # The class of Sidekiq's own "getting started", with every hook.
  class HardJob
    include Sidekiq::Job
    sidekiq_options queue: 'mail', retry: 2, tags: ['a'], tenant: 'x'
    sidekiq_retry_in do |count, error, job|
      SEEN << [:retry_in, count, error.message, job['jid']]
      { 'kill' => :kill, 'discard' => :discard, 'default' => :default }.fetch(error.message, 7)
    end
    sidekiq_retries_exhausted { |job, error| SEEN << [:exhausted, job['args'], job['error_message'], error.class] }

    def perform(name, trouble = nil)
      SEEN << [name, jid, interrupted?]
      raise trouble if trouble
    end
  end

  # Inherits options and hooks.
  class HarderJob < HardJob
    sidekiq_options retry: false
  end

  # Runs with the defaults of Sidekiq.
  class PlainJob
    include Sidekiq::Worker

    def perform(*args)
      SEEN << args
    end
  end

  # Changes its arguments, and fails.
  class GreedyJob
    include Sidekiq::Job

    def perform(list)
      raise KeyError, list.shift
    end
  end

  # Notes its locale.
  class LocaleJob
    include Sidekiq::Job

    def perform
      SEEN << I18n.locale
    end
  end

  # Notes what it is called with.
  class Tracing
    include Sidekiq::ServerMiddleware

    def initialize(name)
      @name = name
    end

    def call(_one, item, queue)
      SEEN << [@name, item['class'], queue]
      yield
    end
  end

  # Changes jobs, and stops some.
  class Stamping
    include Sidekiq::ClientMiddleware

    def call(_job_class, item, _queue, _pool)
      item['stamp'] = 'y'
      yield unless item['args'] == ['stopped']
    end
  end

  def setup
    SEEN.clear
    Sidekiq::Queues.clear_all
    @worker = Worker.new(NOWHERE)
    Millrace.configure(@worker)
    @client = Millrace.client = Testing::Fake.new(@worker)
  end

  def teardown
    Millrace.client = nil
    Sidekiq::Testing.fake!
    config = Sidekiq.config
    [config.client_middleware, config.server_middleware, config.death_handlers, config.error_handlers].each(&:clear)
    Sidekiq::Testing.server_middleware.clear
  end

  def quietly
    before = Millrace.logger
    Millrace.logger = nil
    yield
  ensure
    Millrace.logger = before
  end

  def published(&block)
    Sidekiq::Testing.disable!(&block)
    @client.jobs
  end

  def test_jobs_have_the_options_of_their_class
    jid = Sidekiq::Testing.disable! { HardJob.perform_async('Ann') }
    job = @client.jobs.first.job
    assert_equal [jid, 'TestSidekiq::HardJob', ['Ann']], [job.jid, job.job_class, job.args]
    assert_equal ['mail', 2, ['a']], [job.queue, job.retries, job.tags]
    assert_equal({ 'tenant' => 'x' }, job.fields)
    job = published { PlainJob.perform_async }.last.job
    assert_equal ['default', 25, true], [job.queue, job.retries, job.dead]
  end

  # Other gems take options that JSON does not have. Sidekiq writes them as JSON.
  def test_options_need_not_be_plain
    job = published { HardJob.set(lock: :until_executed, on: { conflict: %i[log] }, tags: %i[a b]).perform_async('Ann') }.first.job
    assert_equal({ 'tenant' => 'x', 'lock' => 'until_executed', 'on' => { 'conflict' => %w[log] } }, job.fields)
    assert_equal %w[a b], job.tags
    assert_raises(Millrace::Invalid) { published { HardJob.perform_async(:Ann) } }
  end

  def test_options_of_a_class
    assert_equal({ 'retry' => true, 'queue' => 'default' }, PlainJob.get_sidekiq_options)
    expected = { 'retry' => false, 'queue' => 'mail', 'tags' => ['a'], 'tenant' => 'x' }
    assert_equal [expected, expected], [HarderJob.get_sidekiq_options, HarderJob.sidekiq_options]
    before = Sidekiq.default_job_options
    Sidekiq.default_job_options = { backtrace: 5 }
    assert_equal 5, PlainJob.get_sidekiq_options['backtrace']
    assert_equal 5, HardJob.get_sidekiq_options['backtrace']
  ensure
    Sidekiq.instance_variable_set(:@default_job_options, before)
  end

  def test_a_job_can_have_options_of_its_own
    jobs = published do
      HardJob.set(queue: :critical, retry: 7).set('priority' => 9, 'limit_key' => 'k').perform_async('Ann')
      HardJob.set(expires_in: 30).perform_async('Bob')
    end
    assert_equal ['critical', 7, 9, nil], [jobs[0].job.queue, jobs[0].job.retries, jobs[0].job.priority, jobs[0].at]
    assert_equal({ 'key' => 'k' }, jobs[0].gate)
    assert_in_delta Time.now.to_f + 30, jobs[1].job.members['expires_at'], 20
  end

  def test_times
    due = published do
      HardJob.set(wait: 60).perform_async('Ann')
      HardJob.perform_in(60, 'Bob')
      HardJob.perform_at(60, 'Cleo')
      HardJob.set(wait_until: Time.at(4_000_000_000)).perform_async('Dan')
      HardJob.perform_at(4_000_000_000.5, 'Eve')
      HardJob.perform_in(-5, 'Flo')
    end.map(&:at)
    due[0..2].each { |at| assert_in_delta Time.now.to_f + 60, at, 20 }
    assert_equal [4_000_000_000, 4_000_000_000.5, nil], due[3..]
  end

  def test_many_jobs_at_once
    jids = Sidekiq::Testing.disable! { HardJob.perform_bulk([['Ann'], ['Bob']], batch_size: 10) }
    assert_equal(jids, @client.jobs.map { |enqueued| enqueued.job.jid })
    Sidekiq::Testing.disable! do
      Sidekiq::Client.push_bulk('class' => HardJob, 'args' => [['Cleo'], ['Dan']], 'at' => [4e9, 5e9])
      Sidekiq::Client.enqueue_to('other', HardJob, 'Eve')
      Sidekiq::Client.push('class' => 'Elsewhere', 'args' => [1], 'retry' => 3)
    end
    assert_equal [4e9, 5e9], @client.jobs[2..3].map(&:at)
    assert_equal %w[other Elsewhere], [@client.jobs[4].job.queue, @client.jobs[5].job_class]
  end

  def test_what_is_no_job_is_refused
    assert_raises(ArgumentError) { HardJob.perform_bulk([1]) }
    assert_raises(ArgumentError) { HardJob.set(jid: 'x').perform_bulk([['Ann'], ['Bob']]) }
    assert_raises(ArgumentError) { Sidekiq::Client.push('class' => HardJob) }
  end

  def test_what_millrace_does_not_have_is_refused
    %i[retry_for retry_queue unique_for encrypt bid].each do |option|
      error = assert_raises(ArgumentError) { HardJob.set(option => 5).perform_async('Ann') }
      assert_match(/\A#{option}: /, error.message)
    end
    assert_raises(Millrace::Invalid) { HardJob.perform_async(:symbol) }
    assert_raises(Sidekiq::Unsupported) { Sidekiq.redis { flunk } }
    assert_raises(Sidekiq::Unsupported) { Sidekiq.strict_args!(false) }
    assert_match(/Millrace::Inspector/, assert_raises(NameError) { Sidekiq::RetrySet.new }.message)
    assert_match(/Millrace\.logger/, assert_raises(NameError) { Sidekiq::Logger::Formatters::Plain.new }.message)
    assert_match(/no Sidekiq::Batch$/, assert_raises(NameError) { Sidekiq::Batch.new }.message)
    assert_raises(NameError) { Sidekiq::Nothing }
  end

  def test_jobs_run_in_a_worker
    jid = Sidekiq::Testing.disable! { HardJob.perform_async('Ann') }
    assert_equal 1, @client.drain
    assert_equal [['Ann', jid, false]], SEEN
    Sidekiq::Testing.disable! { PlainJob.perform_async(1, { 'a' => 2**70 }) }
    @client.drain
    assert_equal [1, { 'a' => 2**70 }], SEEN.last
  end

  def test_a_job_that_fails_is_retried_and_dies
    jid = Sidekiq::Testing.disable! { HardJob.perform_async('Ann', 'oops') }
    assert_raises(RuntimeError) { @client.drain }
    assert_in_delta Time.now.to_f + 7, @client.retries.first.at, 5
    assert_raises(RuntimeError) { @client.drain(retries: true) }
    assert_equal([[:retry_in, 0, 'oops', jid], [:retry_in, 1, 'oops', jid]], SEEN.select { |what,| what == :retry_in })
    assert_equal [:exhausted, %w[Ann oops], 'oops', RuntimeError], SEEN.last
    assert_equal([jid], @client.dead.map { |enqueued| enqueued.job.jid })
  end

  def test_handlers_of_failures
    said = []
    Sidekiq.config.death_handlers << ->(job, error) { said << [:dead, job['jid'], error.message] }
    Sidekiq.config.error_handlers << ->(error, context, config) { said << [error.message, context[:job]['jid'], config] }
    jid = Sidekiq::Testing.disable! { HardJob.set(retry: 0).perform_async('Ann', 'oops') }
    assert_raises(RuntimeError) { @client.drain }
    assert_equal [['oops', jid, Sidekiq.config], [:dead, jid, 'oops']], said
  end

  def test_retry_in_decides
    Sidekiq::Testing.disable! { %w[kill discard default].each { |trouble| HardJob.perform_async('Ann', trouble) } }
    assert_raises(Testing::Failures) { @client.drain }
    assert_equal [%w[Ann kill]], @client.dead.map(&:args)
    assert_equal [%w[Ann default]], @client.retries.map(&:args)
    assert_operator @client.retries.first.at, :>, Time.now.to_f + 7
  end

  def test_without_retry_a_job_is_dropped
    Sidekiq::Testing.disable! { HarderJob.perform_async('Ann', 'oops') }
    assert_raises(RuntimeError) { @client.drain }
    assert_empty @client.dead + @client.retries
    refute_includes SEEN.map(&:first), :exhausted
    Sidekiq::Testing.disable! { HardJob.set(retry: nil).perform_async('Ann', 'oops') }
    assert_raises(RuntimeError) { @client.drain }
    assert_empty @client.dead + @client.retries
    Sidekiq::Testing.disable! { HardJob.set(retry: 0).perform_async('Bob', 'oops') }
    assert_raises(RuntimeError) { @client.drain }
    assert_equal [%w[Bob oops]], @client.dead.map(&:args)
  end

  def test_middleware
    Sidekiq.config.client_middleware { |chain| chain.add(Stamping) }
    Sidekiq.config.server_middleware do |chain|
      chain.add(Tracing, 'inner')
      chain.prepend(Tracing, 'only once')
    end
    assert_nil(Sidekiq::Testing.disable! { PlainJob.perform_async('stopped') })
    jids = Sidekiq::Testing.disable! { PlainJob.perform_bulk([['stopped'], ['Ann']]) }
    assert_nil jids.first
    assert_equal [[jids.last, { 'stamp' => 'y' }]], (@client.jobs.map { |enqueued| [enqueued.job.jid, enqueued.job.fields] })
    @client.drain
    assert_equal [['only once', 'TestSidekiq::PlainJob', 'default'], ['Ann']], SEEN
  end

  def test_locale
    require 'millrace/sidekiq/i18n'
    I18n.available_locales = %i[en de]
    i18n = Sidekiq::Middleware::I18n
    Sidekiq.config.client_middleware.add(i18n::Client) # another test may have removed it
    Sidekiq.config.server_middleware.add(i18n::Server)
    job = I18n.with_locale(:de) { published { LocaleJob.perform_async } }.first.job
    assert_equal({ 'locale' => 'de' }, job.fields)
    Sidekiq::Testing.disable! { LocaleJob.set(locale: nil).perform_async }
    Sidekiq.config.client_middleware.clear
    Sidekiq::Testing.disable! { LocaleJob.perform_async }
    @client.drain
    assert_equal %i[de en en], SEEN
  end

  def test_chain
    chain = Sidekiq::Middleware::Chain.new
    [String, Array].each { |klass| chain.add(klass) }
    chain.insert_before(Array, Hash)
    chain.insert_after(String, Set)
    chain.add(Hash)
    assert_equal [String, Set, Array, Hash], chain.map(&:klass)
    chain.remove(Set)
    assert chain.exists?(String)
    refute_includes chain, Set
    chain.clear
    assert_empty chain
    assert_equal(5, chain.invoke { 5 })
  end

  def test_fake_collects_jobs
    HardJob.perform_async('Ann', 'oops')
    PlainJob.perform_in(5, 'Bob')
    assert_equal [1, 1, 2], [HardJob.jobs.size, Sidekiq::Queues['default'].size, Sidekiq::Job.jobs.size]
    assert_equal [%w[Ann oops], 'mail', 'x'], HardJob.jobs.first.values_at('args', 'queue', 'tenant')
    assert_operator PlainJob.jobs.first['at'], :>, Time.now.to_f
    PlainJob.clear
    assert_equal ['TestSidekiq::HardJob'], Sidekiq::Queues.jobs_by_class.keys
    Sidekiq::Job.clear_all
    assert_empty Sidekiq::Job.jobs
    assert_raises(Millrace::Invalid) { PlainJob.perform_async(Object.new) }
  end

  def test_fake_runs_jobs
    HardJob.perform_async('Ann', 'oops')
    PlainJob.perform_in(5, 'Bob')
    assert_raises(RuntimeError) { HardJob.drain }
    assert_empty HardJob.jobs
    assert_raises(Sidekiq::EmptyQueueError) { HardJob.perform_one }
    Sidekiq::Testing.server_middleware { |chain| chain.add(Tracing, 'test') }
    Sidekiq::Job.drain_all
    assert_equal [['test', 'TestSidekiq::PlainJob', 'default'], ['Bob']], SEEN.last(2)
    assert_empty Sidekiq::Job.jobs
  end

  def test_inline
    Sidekiq::Testing.inline! do
      assert_kind_of String, PlainJob.perform_async({ 'a' => 1 })
      assert_raises(RuntimeError) { HardJob.perform_async('Ann', 'oops') }
    end
    assert Sidekiq::Testing.fake?
    assert_equal [{ 'a' => 1 }], SEEN.first
    assert_equal true, PlainJob.perform_inline('now')
    assert_equal true, PlainJob.set(sync: true).perform_async('now')
    assert_equal [['now'], ['now']], SEEN.last(2)
    assert_empty Sidekiq::Job.jobs
  end

  def test_a_capsule_is_beside_the_default_queue
    before = Millrace.worker_options
    Sidekiq::Config.new.capsule('slow') { |capsule| capsule.queues = %w[reports] }
    assert_equal %w[default], Millrace.worker_options[:queues]
  ensure
    Millrace.worker_options = before
  end

  def test_a_job_that_changes_its_arguments
    said = []
    Sidekiq.config.death_handlers << ->(*) { raise 'this handler fails' }
    Sidekiq.config.death_handlers << ->(job, _error) { said << job.values_at('args', 'queue').push(job['created_at'].class) }
    Sidekiq::Testing.disable! { GreedyJob.set(retry: 0).perform_async(%w[a b]) }
    quietly { assert_raises(KeyError) { @client.drain } }
    assert_equal [[[%w[a b]], 'default', Float]], said
  end

  def test_settings
    Sidekiq.configure_client { |config| SEEN << config }
    Sidekiq.configure_server { flunk 'this is no worker' }
    assert_equal [Sidekiq.config], SEEN
    before = Millrace.worker_options
    config = Sidekiq::Config.new
    config.concurrency = 3
    config.queues = %w[critical,2 default]
    config.capsule('slow') do |capsule|
      capsule.queues = %w[reports]
      capsule.concurrency = 1
    end
    lane = Millrace.worker_options[:lanes].first
    assert_equal ['slow', %w[reports], 1], [lane.name, lane.queues, lane.concurrency]
    options = Millrace.worker_options
    assert_equal [3, { 'critical' => 2, 'default' => 1 }], options.values_at(:concurrency, :queues)
    Worker.new(NOWHERE, **options)
  ensure
    Millrace.worker_options = before
  end
end
