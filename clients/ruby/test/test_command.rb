# frozen_string_literal: true

require 'tempfile'
require_relative 'helper'
require_relative 'beside_broker'
require 'millrace/command'

# The arguments of the command.
class TestCommand < Minitest::Test
  def test_help_and_version
    assert_output(/--queue NAME/) { assert_equal 0, Millrace::Command.run(['--help']) }
    assert_output("#{Millrace::VERSION}\n") { assert_equal 0, Millrace::Command.run(['-v']) }
  end

  def test_what_is_wrong_is_said
    [['--nonsense'], ['--url', 'http://x'], ['-q', 'a,b'], ['-q', 'a,0', '-q', 'b']].each do |args|
      assert_output(nil, /\Amillrace-worker: /) { assert_equal 1, Millrace::Command.run(args) }
    end
  end

  def test_an_error_of_the_program_shows_its_place
    Tempfile.create(%w[program .rb]) do |file|
      file.write("raise ArgumentError, 'mine'")
      file.close
      error = assert_raises(ArgumentError) { Millrace::Command.run([file.path]) }
      assert_match file.path, error.backtrace.first
    end
  end

  def test_configure_worker_needs_a_block
    assert_raises(ArgumentError) { Millrace.configure_worker }
  end

  def test_queues
    queues = lambda do |*args|
      command = Millrace::Command.new
      command.send(:parser).parse(args)
      command.send(:queues)[:queues]
    end
    assert_equal %w[a b], queues.call('-q', 'a', '--queue', 'b')
    assert_equal({ 'a' => 3, 'b' => 1 }, queues.call('-q', 'a,3', '-q', 'b'))
    assert_nil queues.call
  end
end

# The command with a real broker.
class TestCommandBesideBroker < Minitest::Test
  include BesideBroker

  # Runs a program of the tests, and yields its output.
  def command(program, url: @url, env: {})
    lib, exe, file = ['../lib', '../exe/millrace-worker', "programs/#{program}"].map { |path| File.expand_path(path, __dir__) }
    Tempfile.create('millrace-worker') do |out|
      pid = Process.spawn(env, RbConfig.ruby, "-I#{lib}", exe, '--url', url, '--queue', @queue, file, out: out.path, err: File::NULL)
      yield -> { File.readlines(out.path, chomp: true) }
    ensure
      Process.kill('TERM', pid)
      Process.wait(pid)
    end
  end

  def test_a_program_configures_its_worker
    wanted = ['first', 'second', 'perform', 'failure KeyError']
    client.enqueue('Configured', [], queue: @queue, retry: 0)
    command('configured.rb') do |said|
      eventually('the job has run') { said.call.size >= wanted.size }
      assert_equal wanted, said.call
    end
    messages(@sets['dead_jobs'], 1)
  end

  def test_a_program_of_sidekiq
    wanted = ['startup', 'middleware Ported Ported', 'perform Ann false', 'exhausted Ann no such order', 'dead Ported']
    client.enqueue('Ported', ['Ann'], queue: @queue, retry: 0)
    command('sidekiq.rb') do |said|
      eventually('the job has run') { said.call.size >= wanted.size }
      assert_equal wanted, said.call
    end
    messages(@sets['dead_jobs'], 1)
  end

  def test_a_program_sets_options_of_its_worker
    slow = "#{@queue}-slow"
    queue("queue.#{slow}").bind('jobs.direct', routing_key: slow)
    client.enqueue('Slow', [], queue: slow)
    command('options.rb', url: @url.sub('guest:guest', 'guest:wrong'), env: { 'SLOW_QUEUE' => slow }) do |said|
      eventually('the job has run') { said.call == ["perform in #{slow}"] }
    end
  end
end
