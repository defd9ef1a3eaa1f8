# frozen_string_literal: true

require_relative 'helper'
require_relative 'beside_broker'
require 'active_job'
require 'active_support/core_ext/numeric/time'
require 'active_job/queue_adapters/millrace_adapter'

# Enqueues and runs ActiveJob's own classes with a real broker.
class TestActiveJob < Minitest::Test
  include Helper
  include BesideBroker

  SEEN = Thread::Queue.new
  ActiveJob::Base.logger = nil
  ActiveJob::Base.queue_adapter = :millrace

  # An ordinary job, as an application writes it.
  class Welcome < ActiveJob::Base
    def self.millrace_options
      { retry: 5, timeout: 30 }
    end

    def perform(name, at: nil)
      SEEN << [name, at, provider_job_id, queue_adapter.stopping?]
    end
  end

  # Fails, and leaves the retries to Millrace.
  class Broken < ActiveJob::Base
    def perform
      raise KeyError, 'no such user'
    end
  end

  # Fails, and lets ActiveJob enqueue it again.
  class Stubborn < ActiveJob::Base
    retry_on KeyError, wait: 3600, attempts: 2

    def perform
      raise KeyError, 'not yet'
    end
  end

  # Waits until the worker stops.
  class Patient < ActiveJob::Base
    def perform
      SEEN << :began
      queue_adapter.job.wait(0.05) until queue_adapter.stopping?
      SEEN << :stopping
    end
  end

  # Runs until it should end, and returns the reason.
  class Endless < ActiveJob::Base
    def perform
      SEEN << :began
      job = queue_adapter.job
      job.wait(0.05) until job.cancelled?
      SEEN << job.end
    end
  end

  # The same, with a timeout.
  class Timed < Endless
    def self.millrace_options
      { timeout: 0.2 }
    end
  end

  def setup
    super
    Millrace.client = client
    @sets.each_value(&:purge)
    SEEN.clear
  end

  def teardown
    Millrace.client = nil
    super
  end

  def body(message)
    JSON.parse(message.last)
  end

  def made(name, queue = @queue)
    Welcome.new(name).tap { |job| job.queue_name = queue }
  end

  # The attribute is a number up to Rails 7.0, and a time from then on.
  def later(job)
    job.respond_to?(:set) ? job.set(wait: 60) : job.scheduled_at = Time.now.to_f + 60
  end

  # Enqueues jobs as perform_all_later does, which Rails has from 7.1 on.
  def enqueue_all(jobs)
    return ActiveJob::Base.queue_adapter.enqueue_all(jobs) unless ActiveJob.respond_to?(:perform_all_later)

    ActiveJob.perform_all_later(*jobs)
    jobs.count(&:successfully_enqueued?)
  end

  def test_a_worker_runs_it
    at = Time.at(1_700_000_000, in: 'UTC')
    working do |worker, _log|
      start(worker)
      job = Welcome.set(queue: @queue).perform_later('Ann', at: at)
      assert_match(/\A\h{32}\z/, job.provider_job_id)
      assert_equal ['Ann', at, job.provider_job_id, false], pop(SEEN)
    end
  end

  def test_what_is_enqueued
    job = Welcome.set(queue: @queue, priority: 9).perform_later('Bob')
    _, properties, text = messages(@jobs, 1).first
    found = JSON.parse(text)
    assert_equal [job.provider_job_id, Welcome.name, 9], [properties.message_id, properties.type, properties.priority]
    assert_equal [Welcome.name, @queue, 5, 30], found.values_at('class', 'queue', 'retry', 'timeout')
    assert_equal [job.job_id, ['Bob']], found['args'].first.values_at('job_id', 'arguments')
  end

  def test_one_that_is_due_later
    at = Time.now + 86_400
    job = Welcome.set(queue: @queue, wait_until: at).perform_later('Cleo')
    record = body(messages(@sets['scheduled_jobs'], 1).first)
    assert_in_delta at.to_f, record['scheduled_at'], 0.001
    assert_equal [job.provider_job_id, Welcome.name], [record['jid'], record['job']['class']]
  end

  def test_many
    jobs = %w[Dan Eve Fay].map { |name| made(name) }
    later(jobs.last)
    assert_equal 3, enqueue_all(jobs)
    assert_equal(%w[Dan Eve], messages(@jobs, 2).map { |message| body(message)['args'].first['arguments'].first })
    assert_equal jobs.last.provider_job_id, body(messages(@sets['scheduled_jobs'], 1).first)['jid']
  end

  def test_many_of_which_one_is_refused
    jobs = [made('Dan', "no\nqueue"), made('Eve')]
    error = assert_raises(BulkError) { ActiveJob::Base.queue_adapter.enqueue_all(jobs) }
    assert_instance_of Invalid, error.errors[0]
    assert_equal([nil, 32], jobs.map { |job| job.provider_job_id&.size })
  end

  def test_an_unconfirmed_job_keeps_its_jid
    Millrace.client = slow = slow_client
    adapter = ActiveJob::Base.queue_adapter
    jobs = [made('Jan'), made('Kim')]
    @network.without_answers do
      enqueuing = [Thread.new { assert_raises(Unconfirmed) { adapter.enqueue(jobs[0]) } },
                   Thread.new { assert_raises(BulkError) { adapter.enqueue_all([jobs[1]]) } }]
      eventually('both jobs are sent') { @jobs.message_count == 3 }
      slow.close
      enqueuing.each(&:join)
    end
    arrived = messages(@jobs, 3).drop(1).map { |_, properties, _| properties.message_id }
    assert_equal arrived.sort, jobs.map { |job| job.provider_job_id.to_s }.sort
  end

  def test_what_cannot_be_enqueued_is_said
    error = assert_raises(Invalid) { Welcome.set(queue: @queue, priority: 50).perform_later('Gus') }
    assert_match(/priority must be a whole number from 0 to 10/, error.message)
  end

  def test_a_failure_is_retried_by_millrace
    working do |worker, _log|
      start(worker)
      Broken.set(queue: @queue).perform_later
      record = body(messages(@sets['retries'], 1).first)
      assert_equal ['KeyError', 'no such user', Broken.name], [*record.values_at('error_class', 'error_message'), record['job']['class']]
    end
  end

  def test_retry_on_enqueues_it_again
    working do |worker, _log|
      start(worker)
      Stubborn.set(queue: @queue).perform_later
      record = body(messages(@sets['scheduled_jobs'], 1).first)
      assert_equal [Stubborn.name, 1], [record['job']['class'], record['job']['args'].first['executions']]
    end
    assert_equal 0, @sets['retries'].message_count
  end

  def test_a_job_sees_that_its_worker_stops
    working do |worker, _log|
      start(worker)
      Patient.set(queue: @queue).perform_later
      assert_equal :began, pop(SEEN)
    end
    assert_equal :stopping, pop(SEEN)
  end

  def test_a_job_sees_that_it_should_end
    working do |worker, _log|
      start(worker)
      Timed.set(queue: @queue).perform_later
      assert_equal %i[began timeout], [pop(SEEN), pop(SEEN)]
      jid = Endless.set(queue: @queue).perform_later.provider_job_id
      assert_equal :began, pop(SEEN)
      worker.settler.cancel(jid)
      assert_equal :cancelled, pop(SEEN)
    end
    assert_nil ActiveJob::Base.queue_adapter.job
  end

  def test_a_class_that_is_gone
    assert_nil Handler.entry_of('TestActiveJob::Gone')
    assert_nil Handler.entry_of('TestActiveJob')
    assert_equal 30, Handler.entry_of(Welcome.name).timeout
  end

  # As in a Rails application, where the gem is loaded after Rails.
  def test_the_adapter_is_found_by_its_name
    program = "require 'active_job'; require 'millrace'; ActiveJob::Base.queue_adapter = :millrace; puts ActiveJob::Base.queue_adapter_name"
    assert_equal "millrace\n", IO.popen([RbConfig.ruby, "-I#{File.expand_path('../lib', __dir__)}", '-e', program], &:read)
  end

  def test_without_a_broker
    Millrace.client = fake = Testing::Fake.new
    Welcome.set(wait: 60).perform_later('Ida')
    assert_equal [Welcome.name], fake.jobs(Welcome).map(&:job_class)
    fake.drain
    assert_equal 'Ida', pop(SEEN).first
  end

  def test_rails_7_2_has_the_transaction_commit_first
    assert_predicate ActiveJob::Base.queue_adapter, :enqueue_after_transaction_commit?
  end
end

# Durations of ActiveSupport. They claim to be numbers, and JSON would write them as texts.
class TestDurations < Minitest::Test
  include Helper

  def test_a_new_job
    _, message = NewJob.new('A', [], at: Wire.now + 1.hour, timeout: 5.minutes).prepare(1.0)
    record = JSON.parse(message.body)
    assert_in_delta Time.now.to_f + 3600, record['scheduled_at'], 60
    assert_equal 300, record['job']['timeout']
  end

  def test_the_time_until_the_next_attempt
    { RuntimeError.new('x') => ->(*) { 5.minutes }, RetryIn.new(5.minutes) => nil }.each do |error, retry_in|
      record = JSON.parse(failed(job, error, 1.0, retry_in: retry_in).record)
      assert_in_delta 301.0, record['retry_at']
    end
  end
end
