# frozen_string_literal: true

require 'tmpdir'
require_relative 'helper'

# A worker without a broker. The conformance suite tests the rest.
class TestWorker < Minitest::Test
  include Helper

  def test_settings_that_are_wrong
    [{ queues: 'default' }, { queues: [] }, { queues: %w[a a] }, { queues: { 'a' => 0 } }, { queues: ["a\n"] }, { concurrency: 0 },
     { lanes: [Lane.new('a', ['x']), Lane.new('a', ['y'])] }, { tag: 'a:b' }].each do |options|
      assert_raises(ArgumentError, options.inspect) { Worker.new(NOWHERE, **options) }
    end
    assert_raises(ArgumentError) { Worker.new('redis://x') }
    assert_raises(ArgumentError) { Worker.new(NOWHERE).on(:nonsense) { nil } }
    assert_raises(ArgumentError) { Worker.new(NOWHERE).handle('A', 5) }
  end

  def test_a_class_has_one_handler
    worker = Worker.new(NOWHERE)
    worker.handle('A') { nil }
    error = assert_raises(ArgumentError) { worker.handle(:A) { nil } }
    assert_match(/\Aclass A has two handlers, at .*test_worker\.rb:\d+ and at .*test_worker\.rb:\d+\z/, error.message)
  end

  # Runs the block with these classes only, as if a program had loaded them.
  def with_classes(*classes)
    loaded = Handler.instance_variable_get(:@classes)
    Handler.instance_variable_set(:@classes, loaded | classes)
    yield
  ensure
    Handler.instance_variable_set(:@classes, loaded)
  end

  def class_called(name, job_class = nil)
    before = Handler.instance_variable_get(:@classes)
    Class.new { include Millrace::Handler }.tap do |made|
      made.define_singleton_method(:name) { name }
      made.millrace_class(job_class) if job_class
    end
  ensure
    Handler.instance_variable_set(:@classes, before)
  end

  def test_two_classes_for_one_name_are_refused_at_the_start
    with_classes(class_called('Mail'), class_called('OldMail', 'Mail')) do
      assert_match(/class Mail has two handlers: Mail and OldMail/, assert_raises(ArgumentError) { Worker.new(NOWHERE).run }.message)
    end
    with_classes(class_called('Mail')) do
      worker = Worker.new(NOWHERE).handle('Mail') { nil }
      assert_match(/class Mail has two handlers: Mail and the handler at/, assert_raises(ArgumentError) { worker.run }.message)
    end
    # A class that was loaded again has no second handler.
    with_classes(class_called('Mail'), class_called('Mail')) { Handler.check_unique({}) }
  end

  def test_a_class_is_found_without_asking_the_others
    asked = Thread::Queue.new
    one, two = %w[One Two].map { |name| class_called(name) }
    [one, two].each do |made|
      made.define_singleton_method(:millrace_class) do |*|
        asked << name
        nil
      end
    end
    with_classes(one, two) do
      assert_equal one, Handler.find('One')
      asked.clear
      assert_equal [two, nil], [Handler.find('Two'), Handler.find('Three')]
      assert_empty asked
    end
  end

  def test_a_class_that_gets_its_name_later_is_found
    with_classes do
      late = Class.new { include Millrace::Handler }
      assert_nil Handler.find('TestWorker::Late')
      TestWorker.const_set(:Late, late)
      assert_equal late, Handler.find('TestWorker::Late')
      late.millrace_class('late.jobs')
      assert_equal [nil, late], [Handler.find('TestWorker::Late'), Handler.find('late.jobs')]
    end
  ensure
    TestWorker.send(:remove_const, :Late) if TestWorker.const_defined?(:Late, false)
  end

  # A class that is loaded when a job names it, as with Zeitwerk.
  module Lazy
    autoload :Greet, File.expand_path('programs/lazy_greet.rb', __dir__)
    autoload :Plain, File.expand_path('programs/lazy_plain.rb', __dir__)
    autoload :Broken, File.expand_path('programs/lazy_broken.rb', __dir__)
  end

  def test_a_class_that_loads_lazily_is_found
    worker = Worker.new(NOWHERE)
    assert Lazy.autoload?(:Greet)
    assert_equal 7, worker.handler('TestWorker::Lazy::Greet').timeout
    assert_nil worker.handler('TestWorker::Lazy::Plain'), 'it is no handler'
    assert Lazy.autoload?(:Broken)
    attempt = Attempt.new(worker, job('{"class":"TestWorker::Lazy::Broken"}'))
    assert_equal %w[failed LoadError], [attempt.run.status, attempt.error.class.name]
  end

  AGAIN = 'TestWorker::Lazy::Again'

  # Makes the class load from a program of this version, as a reloader does.
  def reload(version)
    Dir.mktmpdir do |folder|
      File.write("#{folder}/again.rb", <<~RUBY)
        class #{AGAIN}
          include Millrace::Handler
          millrace_options timeout: #{version}
          def perform = #{version}
        end
      RUBY
      Lazy.send(:remove_const, :Again) if Lazy.const_defined?(:Again, false)
      Lazy.autoload(:Again, "#{folder}/again.rb")
      yield
    end
  end

  def test_a_class_that_was_loaded_again_replaces_itself
    worker = Worker.new(NOWHERE)
    timeouts = [1, 2].map { |version| reload(version) { worker.handler(AGAIN).timeout } }
    assert_equal [1, 2], timeouts
    Handler.check_unique({})
  end

  def test_middleware_may_load_a_class_again
    worker = Worker.new(NOWHERE).use { |_job, next_one| reload(2) { next_one.call } }
    found = reload(1) { worker.handler(AGAIN) }
    assert_equal [1, 2], [found.timeout, found.run(job(%({"class":"#{AGAIN}"})))]
  end

  def test_a_name_that_is_no_handlers
    worker = Worker.new(NOWHERE)
    ['Kernel', 'String', 'Millrace', 'Millrace::Nothing', 'TestWorker::String', 'exit', 'Object.exit', 'A::', '::String', "String\n",
     "#{'A::' * 1000}A", 'ENV', 'RUBY_VERSION::A', 'é', ''].each { |name| assert_nil worker.handler(name), name }
  end

  def test_nothing_is_registered_once_it_runs
    worker = Worker.new(NOWHERE)
    thread = Thread.new { worker.run }
    Thread.pass until worker.instance_variable_get(:@ran)
    late = [-> { worker.handle('A') { nil } }, -> { worker.use { nil } }, -> { worker.on(:quiet) { nil } }]
    said = late.map { |call| assert_raises(RuntimeError, &call).message }
    whats = ['the handler of A', 'middleware', 'the hook quiet']
    assert_equal whats.map { |what| "#{what} must be registered before the worker starts" }, said
  ensure
    worker.stop
    thread.join
  end

  def test_lanes
    assert_equal([['default']], Worker.new(NOWHERE).pools.map { |pool| pool.lane.queues })
    worker = Worker.new(NOWHERE, queues: { 'a' => 3, 'b' => 1 }, concurrency: 2, lanes: [Lane.new('quick', ['c'], concurrency: 4)])
    assert_equal [4, 4], worker.pools.map { |pool| pool.lane.prefetch }, 'twice the threads where queues are chosen from'
  end

  def test_it_ends_when_stopped_without_a_broker
    said = []
    worker = Worker.new(NOWHERE)
    %i[startup quiet shutdown].each { |event| worker.on(event) { said << event } }
    worker.on(:quiet) { raise 'a hook that fails' }
    thread = Thread.new { worker.run }
    worker.stop
    assert thread.join(30)
    assert_equal %i[quiet shutdown], said
    assert_raises(RuntimeError) { worker.run }
    refute_match(/guest/, worker.inspect)
  end

  def test_signals
    worker = Worker.new(NOWHERE)
    quiet = Thread::Queue.new
    worker.on(:quiet) { quiet << true }
    before = Signal.trap('TERM') { nil }
    thread = Thread.new { worker.run(signals: true) }
    # Wait until the worker handles the signals.
    Thread.pass until Signal.trap('TSTP', 'IGNORE').is_a?(Proc)
    Process.kill('TERM', Process.pid)
    assert thread.join(30)
    refute_empty quiet
  ensure
    Signal.trap('TERM', before || 'DEFAULT')
    Signal.trap('TSTP', 'DEFAULT')
  end

  def test_commands
    worker = Worker.new(NOWHERE)
    ['no JSON', '[]', '{"op":"pause","identity":"else","queue":"q"}', '{"op":"nonsense","identity":"*"}', '{"op":"cancel","identity":"*"}']
      .each { |body| Control.obey(worker, body.dup) }
    assert_empty worker.paused
    Control.obey(worker, %({"op":"pause","identity":"#{worker.identity}","queue":"q"}))
    assert_equal ['q'], worker.paused.to_a
    Control.obey(worker, '{"op":"resume","identity":"*","queue":"q"}')
    assert_empty worker.paused
    Control.obey(worker, '{"op":"quiet","identity":"*"}')
    assert_equal 'quiet', worker.state
    Control.obey(worker, '{"op":"stop","identity":"*"}')
    assert_equal 'stopping', worker.state
  end

  def test_heartbeat
    worker = Worker.new(NOWHERE, queues: { 'a' => 3 }, lanes: [Lane.new('b', %w[b a], concurrency: 2)], labels: { 'zone' => 'x' })
    beat = JSON.parse(Wire.dump(Heartbeat.describe(worker, 7)))
    assert_equal [7, 0, %w[a b], { 'a' => 3 }, 'running', 7, { 'zone' => 'x' }],
                 beat.values_at('concurrency', 'busy', 'queues', 'weights', 'state', 'rtt_us', 'labels')
    assert_operator beat['rss_kb'], :>, 1000
    refute Heartbeat.describe(worker, nil).key?('rtt_us')
  end
end
