# frozen_string_literal: true

require_relative 'helper'

# What vectors do not say of outcomes and records.
class TestOutcome < Minitest::Test
  include Helper

  def record(error, body = '{"class":"A","jid":"j"}', **more)
    JSON.parse(failed(job(body), error, **more).record)
  end

  def test_own_backoff
    { ->(*) { 2 } => 2..2, ->(*) {} => 15..45, ->(*) { raise 'x' } => 15..45, ->(*) { -1 } => 15..45, ->(*) { 'x' } => 15..45 }
      .each do |own, range|
        found = record(RuntimeError.new('x'), retry_in: own)
        assert_includes range, found['retry_at'] - found['failed_at']
      end
    assert_equal 1.0, record(RetryIn.new(0))['retry_at']
    assert_includes 16..46, record(RetryIn.new(Float::NAN))['retry_at']
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
    assert_equal 'discarded', failed(job, error, ending: :cancelled).status
    assert_equal :requeue, failed(job, error, stopping: true, ending: :stopping).answer
    assert_equal :requeue, failed(job, HandBack.new, stopping: true).answer
    assert_equal 'failed', failed(job, error, stopping: true).status
    assert_equal 'discarded', failed(job, Discard.new, stopping: true, ending: :stopping).status
  end

  def test_a_backtrace_begins_where_it_broke
    error = raised(RuntimeError.new('outer'), cause: raised(KeyError.new('inner')))
    lines = record(error, '{"class":"A","backtrace":true}')['backtrace'].split("\n")
    assert_match(/helper\.rb.*raised/, lines.first)
    assert_includes lines, 'caused by KeyError: inner'
    refute(record(error, '{"class":"A"}').key?('backtrace'))
    assert_equal 2, record(error, '{"class":"A","backtrace":2}')['backtrace'].lines.size
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
