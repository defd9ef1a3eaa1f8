# frozen_string_literal: true

require_relative 'helper'

# What a worker logs about jobs.
class TestReport < Minitest::Test
  include Helper

  # Returns the log lines of a block.
  def lines
    out = StringIO.new
    yield Logger.new(out, formatter: ->(severity, _time, _name, line) { "#{severity} #{line}\n" })
    out.string
  end

  # Returns the log lines of an outcome.
  def said(outcome, found = job, **more)
    lines { |log| Report.outcome(log, found, outcome, **more) }
  end

  def test_a_failure_says_what_comes_next_and_where_it_broke
    error = raised(KeyError.new("key not found: :x\nsecond line"), cause: raised(RuntimeError.new('inner')))
    found = job('{"class":"Greet","jid":"j","retry_count":2,"args":["secret"]}', 'mail')
    line, *stack = said(failed(found, error, 1_700_000_000.0, retry_in: ->(*) { 60 }), found).lines(chomp: true)
    assert_equal 'WARN job failed class=Greet jid=j queue=mail attempt=3 next=retry retry_at=2023-11-14T22:14:20Z error_class=KeyError ' \
                 'error="key not found: :x\nsecond line"', line
    assert_match(/\A    .*helper\.rb:\d+:in `raised'\z/, stack.first)
    assert_includes stack, '    caused by RuntimeError: inner'
  end

  def once(more = '')
    job(%({"class":"A","jid":"j","retry":0#{more}}))
  end

  def test_each_failure
    dropped = once(',"dead":false')
    error = KeyError.new('gone')
    { failed(once, error) => /\AWARN job failed .* next=dead error_class=KeyError error=gone/,
      failed(dropped, error) => /\AWARN job failed .* next=discarded error_class=KeyError/,
      failed(job, Kill.new('no such order')) => /\AWARN job failed .* next=dead error_class=Killed error="no such order"/,
      failed(job, error, retry_in: ->(*) { :discard }) => /\AWARN job failed .* next=discarded error_class=KeyError/,
      failed(job, UnknownClass.new('A')) => /\AWARN job failed .* next=retry .*error_class=UnknownClass error="no handler for class A"/ }
      .each { |outcome, line| assert_match line, said(outcome) }
    assert_match(/ next=redelivery error_class=KeyError/, said(failed(job, error), lost: true))
  end

  def test_each_other_end
    { failed(job, Discard.new('paid already')) => /\AINFO job discarded .*attempt=1 reason="paid already"\n\z/,
      failed(job, KeyError.new('gone'), why: :cancelled) => /\AINFO job discarded .* reason=cancelled\n\z/,
      Outcome::Judge.poisoned(job, 3, 1.0) => /\AWARN job given up before it began .* next=dead error_class=poison/,
      Outcome::Judge.expired(job, 1.0) => /\AWARN job expired .* next=dead\n\z/,
      Outcome::Judge.expired(once(',"dead":false'), 1.0) => /\AINFO job expired .* next=discarded\n\z/,
      Outcome::HANDED_BACK => /\AINFO job handed back class=A jid=j queue=q attempt=1\n\z/,
      Outcome::SUCCEEDED => /\A\z/ }.each { |outcome, line| assert_match line, said(outcome) }
  end

  def test_names_that_are_no_words
    found = job(JSON.generate({ class: "A\nWARN job=1", jid: 'j' * 1000, args: [] }))
    line = said(failed(found, RuntimeError.new('')), found).lines.first
    assert_includes line, %(class="A\\nWARN job=1" jid=#{'j' * 200} queue=q)
    assert_includes line, 'error=""'
  end

  def test_lines_about_records
    found = job('{"class":"A","jid":"j\\nERROR job=1"}')
    { record_refused: 'ERROR the broker does not take', begin_unwritten: 'WARN a job begins' }.each do |name, begins|
      line = lines { |log| Report.public_send(name, log, found, Refused.new('312')) }
      assert_match(/\A#{begins}.* class=A jid="j\\nERROR job=1" queue=q attempt=1 error=312\n\z/, line)
    end
  end

  def test_a_logger_that_fails_changes_nothing
    broken = Class.new { def warn(_line) = raise('disk full') }.new
    assert_nil Report.outcome(broken, job, failed(job, RuntimeError.new('x')))
  end

  def test_a_logger_can_be_replaced_and_silenced
    before = Millrace.logger
    out = StringIO.new
    Millrace.logger = Logger.new(out)
    Worker.new(NOWHERE).hooks.call_here(:failure, job, nil)
    Worker.new(NOWHERE, logger: nil).log.error('x')
    assert_empty out.string
    Worker.new(NOWHERE).on(:failure) { raise 'broken hook' }.hooks.call_here(:failure, job, nil)
    assert_match(/hook failed hook=failure error_class=RuntimeError error="broken hook"\n    .*test_report\.rb/, out.string)
    Millrace.logger = nil
    Millrace.logger.error('x')
  ensure
    Millrace.logger = before
  end
end
