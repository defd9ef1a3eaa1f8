# frozen_string_literal: true

require 'tempfile'
require_relative 'helper'
require_relative 'beside_broker'

# A Rails application with a real broker, in processes of its own.
class TestRailtie < Minitest::Test
  include BesideBroker

  LIB = File.expand_path('../lib', __dir__)
  WORKER = File.expand_path('../exe/millrace-worker', __dir__)

  def setup
    super
    @sets.each_value(&:purge)
    @app = Dir.mktmpdir('millrace-rails-')
    FileUtils.cp_r("#{__dir__}/rails/.", @app)
    write { |text| text } # older than later versions
  end

  def teardown
    FileUtils.rm_rf(@app) if @app
    super
  end

  def resize
    File.join(@app, 'app/jobs/resize.rb')
  end

  # Changes the class Resize. The first version is an hour old.
  def write
    File.write(resize, yield(File.read(resize)))
    File.utime(Time.now - 3600, Time.now - 3600, resize) unless @written
    @written = true
  end

  # Runs the application's worker, and yields its output.
  def worker
    Tempfile.create('millrace-worker') do |out|
      pid = Process.spawn({ 'SHOP_BROKER' => @url }, RbConfig.ruby, "-I#{LIB}", WORKER, '--queue', @queue, 'config/environment.rb',
                          chdir: @app, out: out.path, err: %i[child out])
      yield -> { File.read(out.path) }
    ensure
      Process.kill('TERM', pid)
      Process.wait(pid)
    end
  end

  # Returns the output of a program of the application.
  def program(text, broker = @url)
    whole = "require './config/environment'; #{text}"
    IO.popen([{ 'SHOP_BROKER' => broker }, RbConfig.ruby, "-I#{LIB}", '-e', whole, { chdir: @app }], &:read)
  end

  def test_jobs_run_in_the_executor_and_with_the_latest_code
    worker do |said|
      client.enqueue('resize-image', ['first'], queue: @queue)
      eventually('the job has run') { said.call.include?("old first in an executor: true\ncomplete NilClass\n") }
      write { |text| text.sub('old', 'new') }
      client.enqueue('resize-image', ['second'], queue: @queue)
      eventually('it runs with new code') { said.call.include?("new second in an executor: true\n") }
    end
    assert_includes File.read(File.join(@app, 'log/development.log')), 'worker started'
  end

  # The executor of Rails 7.1 reports errors that it sees.
  def test_the_executor_sees_failures_alone
    worker do |said|
      client.enqueue('resize-image', ['gone'], queue: @queue)
      eventually('the job is discarded') { said.call.include?("gone in an executor: true\ncomplete NilClass\n") }
      client.enqueue('resize-image', ['missing'], queue: @queue, retry: 0)
      eventually('the job has failed') { said.call.include?("missing in an executor: true\ncomplete KeyError\n") }
    end
    assert_equal 'KeyError', JSON.parse(messages(@sets['dead_jobs'], 1).first.last)['error_class']
  end

  def test_jobs_of_active_job
    worker do |said|
      jid = program("print Welcome.set(queue: '#{@queue}').perform_later('Ann').provider_job_id")
      assert_match(/\A\h{32}\z/, jid)
      eventually('the job has run') { said.call.include?("Welcome Ann\n") }
    end
  end

  def test_settings
    assert_equal 'true', program('print Millrace.logger.equal?(Rails.logger)')
    assert_equal 'shop', program("print Millrace.worker_options[:labels]['app']")
    enqueue = "begin; Millrace.enqueue('A', deadline: 600); rescue Millrace::Unreachable => e; print e.class; end"
    assert_equal 'Millrace::Unreachable', program(enqueue, NOWHERE)
  end
end
