# frozen_string_literal: true

require_relative 'helper'

# Outcomes and records that no vector has.
class TestOutcome < Minitest::Test
  include Helper

  def record(error, body = '{"class":"A","jid":"j"}', **more)
    JSON.parse(failed(job(body), error, **more).record)
  end

  # Returns the log of a program.
  def log
    @log ||= StringIO.new
    Logger.new(@log, formatter: ->(severity, _time, _name, line) { "#{severity} #{line}\n" })
  end

  def test_own_backoff
    { ->(*) { 2 } => 2..2, ->(*) {} => 15..45, ->(*) { -1 } => 15..45, ->(*) { 0 } => 15..45 }.each do |own, range|
      found = record(RuntimeError.new('x'), retry_in: own, log: log)
      assert_includes range, found['retry_at'] - found['failed_at']
    end
    assert_empty @log.string
    assert_equal 1.0, record(RetryIn.new(0))['retry_at']
    assert_includes 16..46, record(RetryIn.new(Float::NAN))['retry_at']
  end

  # Before, a job was rejected as undecodable if its backoff exited or overflowed the stack.
  def test_a_backoff_that_fails_is_logged_and_the_default_is_used
    deeper = ->(*) { deeper.call }
    { ->(*) { raise KeyError, 'no such step' } => 'error_class=KeyError error="no such step"', ->(*) { exit } => 'error_class=SystemExit',
      ->(*) { 'x' } => /error_class=TypeError .* seconds, nil, :kill or :discard, not/, ->(*) { Float::NAN } => 'NaN',
      ->(*) { raise NotImplementedError } => 'NotImplementedError', deeper => 'SystemStackError' }.each do |own, said|
      @log = nil
      found = record(RuntimeError.new('x'), retry_in: own, log: log)
      assert_includes 15..45, found['retry_at'] - found['failed_at']
      assert_match(/\AWARN retry_in failed, the default backoff is used class=A jid=j queue=q attempt=1 error_class=/, @log.string)
      assert_match said, @log.string
      assert_match(/\n    .*test_outcome\.rb:\d+:in /, @log.string, 'the stack')
    end
  end

  def test_a_backoff_may_kill_or_discard
    killed = failed(job, KeyError.new('gone'), retry_in: ->(*) { :kill })
    assert_equal %w[dead dead_jobs KeyError], [killed.status, killed.stream, killed.died.class.name]
    assert_equal %w[killed KeyError gone], JSON.parse(killed.record).values_at('reason', 'error_class', 'error_message')
    dropped = failed(job, KeyError.new('gone'), retry_in: ->(*) { :discard })
    assert_equal ['discarded', nil, :ack, nil], [dropped.status, dropped.record, dropped.answer, dropped.died]
    assert_instance_of KeyError, dropped.failure
  end

  def test_a_verdict_shows_what_it_was_made_of
    said = ->(error, **more) { record(error, **more).values_at('error_class', 'error_message') }
    assert_equal %w[KeyError gone], said.call(Kill.new(KeyError.new('gone')))
    assert_equal %w[Killed gone], said.call(Kill.new('gone'))
    assert_equal %w[KeyError gone], said.call(raised(Kill.new('gone'), cause: KeyError.new('x')))
    assert_equal ['Millrace::RetryIn', 'tried again later'], said.call(RetryIn.new(1))
    assert_equal %w[KeyError gone], said.call(RetryIn.new(1, KeyError.new('gone')))
    assert_equal ['HandBack', 'handed back by a worker that is not stopping'], said.call(HandBack.new)
  end

  def test_a_timeout_is_said_in_the_seconds_that_were_given
    assert_equal(['ran longer than 1.5 s', 'ran longer than 3600 s'], [1.5, 3600.0].map { |s| Timeout.new(s).message })
  end

  def test_cancelled_and_stopping
    error = RuntimeError.new('x')
    assert_equal 'discarded', failed(job, error, why: :cancelled).status
    assert_equal :requeue, failed(job, error, stopping: true, why: :stopping).answer
    assert_equal :requeue, failed(job, HandBack.new, stopping: true).answer
    assert_equal 'failed', failed(job, error, stopping: true).status
    assert_equal 'discarded', failed(job, Discard.new, stopping: true, why: :stopping).status
  end

  def test_a_backtrace_begins_where_it_broke
    error = raised(RuntimeError.new('outer'), cause: raised(KeyError.new('inner')))
    lines = record(error, '{"class":"A","backtrace":true}')['backtrace'].split("\n")
    assert_match(/helper\.rb.*raised/, lines.first)
    assert_includes lines, 'caused by KeyError: inner'
    assert_equal 2, record(error, '{"class":"A","backtrace":2}')['backtrace'].lines.size
  end

  def test_twenty_lines_of_a_backtrace_are_kept_by_default
    error = RuntimeError.new('x').tap { |e| e.set_backtrace(Array.new(200) { |i| "app.rb:#{i}" }) }
    lines = ->(body) { record(error, body)['backtrace']&.lines&.size }
    assert_equal [20, 100, 7, nil, nil], [lines.call('{"class":"A"}'), lines.call('{"class":"A","backtrace":true}'),
                                          lines.call('{"class":"A","backtrace":7}'), lines.call('{"class":"A","backtrace":false}'),
                                          lines.call('{"class":"A","backtrace":0}')]
  end

  def test_errors_that_cannot_be_read
    mute = Class.new(StandardError) { def message = raise('no') }
    strange = Class.new(StandardError) { def error_class = "\xff#{'x' * 2000}" }
    assert_equal '(RuntimeError while its message was asked for)', record(mute.new)['error_message']
    found = record(strange.new("a\xffb".b))
    assert_equal "\u{fffd}#{'x' * 1021}", found['error_class']
    assert_equal "a\u{fffd}b", found['error_message']
    assert_equal 10_000, record(RuntimeError.new('é' * 20_000))['error_message'].size
    assert_equal 'höher', record(RuntimeError.new('höher'.encode('ISO-8859-1')))['error_message']
  end

  def test_too_large_is_rejected
    outcome = failed(job(%({"class":"A","args":["#{'x' * (16 << 20)}"]})), RuntimeError.new('x'))
    assert_equal [:reject, 'dead', nil], [outcome.answer, outcome.status, outcome.record]
  end
end
