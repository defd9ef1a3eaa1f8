# frozen_string_literal: true

require 'helper'
require 'beside_broker'
require 'millrace/testing'

# Unique jobs: which of them stays. A thread answers as a leader does.
class TestUniqueJobs < Minitest::Test
  include Helper
  include BesideBroker

  OTHER = { 'status' => 200, 'jid' => 'mine', 'duplicate_of' => 'other' }.freeze
  KEY = { unique: { key: 'k', for: 60 } }.freeze

  # A class whose jobs are unique.
  class Sync
    include Millrace::Handler
    millrace_options unique: { by: ['args.0'], on: :replace }

    def perform(*); end
  end

  def deciding(*replies, &block)
    leading(*replies, inbox: 'jobs.gated', &block)
  end

  def test_the_leader_says_which_job_stays
    full = { 'status' => 503, 'reason' => 'it is full' }
    deciding({ 'status' => 201, 'jid' => 'mine' }, OTHER, { 'status' => 200, 'jid' => 'other' }, full) do |jobs|
      assert_equal Decision.new('mine'), client.enqueue_unique('A', [1], jid: 'mine')
      2.times { assert_equal Decision.new('other', duplicate: true), client.enqueue_unique('A', jid: 'mine', at: 1_800_000_000, **KEY) }
      assert_match('it is full', assert_raises(Refused) { client.enqueue_unique('A') }.message)
      later = { 'unique' => { 'key' => 'k', 'for' => 60 }, 'at' => 1_800_000_000 }
      assert_equal([{ 'unique' => {} }, later, later], jobs.first(3).map { |job| job['gate'] })
    end
  end

  def test_classes_and_middleware
    Millrace.client = Client.new(@url).use do |job, call|
      job.options[:tags] = ['seen']
      call.call(job) unless job.job_class == 'Swallowed'
    end
    deciding(OTHER, OTHER) do |jobs|
      assert_nil Millrace.enqueue_unique('Swallowed')
      assert_predicate Sync.perform_unique(7), :duplicate?
      assert_predicate Sync.set(unique: true).perform_unique(7), :duplicate?
      assert_equal([{ 'by' => ['args.0'], 'on' => 'replace' }, {}], jobs.map { |job| job['gate']['unique'] })
      assert_equal ['seen'], jobs.first['tags']
    end
  ensure
    Millrace.client.close
    Millrace.client = nil
  end

  def test_no_decision_comes
    deciding(nil, nil) do |jobs|
      error = assert_raises(Undecided) { client.enqueue_unique('A', jid: 'late', deadline: 2) }
      assert_match(/job late is published.*no leader has answered/, error.message)
      assert_equal 'late', error.jid
      other = Client.new(@url)
      asking = Thread.new { assert_raises(Undecided) { other.enqueue_unique('A') } }
      eventually('it is published') { jobs.size == 2 }
      sleep 0.1 # for the confirm
      other.close
      assert_match(/lost or closed/, asking.value.message)
    end
  end

  def test_a_job_that_is_not_published_is_not_undecided
    away = Client.new('amqp://guest:guest@127.0.0.1:1/')
    assert_raises(Unreachable) { away.enqueue_unique('A', deadline: 0.2) }
    assert_raises(Invalid) { away.enqueue_unique('A', unique: { max: 3 }) }
    assert_raises(Invalid) { away.publish_in(60, 'orders', unique: true) }
    assert_raises(Invalid) { away.define('app', [PeriodicJob.new('a', Sync, every: 60)]) }
  end
end

# The fakes keep unique jobs apart.
class TestUniqueFakes < Minitest::Test
  include Millrace

  def setup
    @during = []
    @worker = Worker.new('amqp://nowhere.invalid')
    @worker.handle('A') do |job|
      next if job.attempt > 1 || @during.size > 1

      @during << nil
      @during[-1] = @client.enqueue_unique('A', [1], **@options)
      raise KeyError, 'fails'
    end
    @worker.handle('Kill') { raise Kill, 'no' }
    @options = {}
  end

  def duplicate?(job_class, args = [], **options)
    @client.enqueue_unique(job_class, args, **options).duplicate?
  end

  def test_a_duplicate_is_not_enqueued
    @client = Testing::Fake.new(@worker)
    first = @client.enqueue_unique('A', [1])
    assert_equal Decision.new(first.jid, duplicate: true), @client.enqueue_unique('A', [1], unique: true)
    refute_equal first.jid, @client.enqueue('A', [1], unique: true)
    assert_equal 1, @client.jobs.size
    assert_raises(KeyError) { @client.drain }
    assert_equal [Decision.new(first.jid, duplicate: true)], @during
    assert duplicate?('A', [1]), 'it waits for a retry'
    @client.drain(retries: true)
    refute duplicate?('A', [1]), 'it has ended'
    @client.clear
    refute duplicate?('A', [1]), 'nothing is left'
  end

  def test_while_it_waits
    @options = { unique: { while: :waiting } }
    [Testing::Fake, Testing::Inline].each do |kind|
      @during = [nil]
      @client = kind.new(@worker)
      assert_raises(KeyError) { @client.enqueue('A', [1], **@options).then { @client.drain } }
      refute_predicate @during.last, :duplicate?
    end
  end

  def test_for_a_time
    @client = Testing::Fake.new(@worker)
    @client.enqueue('Kill', unique: { key: 'hour', for: 3600 })
    @client.enqueue('Kill', unique: { key: 'dead' })
    assert_raises(Testing::Failures) { @client.drain }
    assert duplicate?('A', unique: { key: 'hour' })
    refute duplicate?('A', unique: { key: 'dead' }), 'a dead job has no key'
  end

  def test_a_later_job_replaces_one_that_waits
    @client = Testing::Fake.new
    customer = { by: ['args.0.customer'], on: :replace }
    @client.enqueue('A', [{ 'customer' => 1, 'n' => 1 }], unique: customer)
    refute duplicate?('A', [{ 'customer' => 1, 'n' => 2 }], unique: customer, at: 2_000_000_000)
    assert_equal([[2, 2_000_000_000]], @client.jobs.map { |enqueued| [enqueued.args[0]['n'], enqueued.at] })
  end
end
