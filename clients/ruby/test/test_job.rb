# frozen_string_literal: true

require_relative 'helper'

# Rules for delivered jobs that no vector has.
class TestJob < Minitest::Test
  include Helper

  def test_integers_are_exact
    digits = '1' * 5000
    assert_equal [digits.to_i, 7], job(%({"class":"A","args":[#{digits}, 7]})).args
  end

  def test_a_lone_surrogate_is_read_and_the_bytes_stay
    body = '{"class":"A","args":["\ud800x\udc00", "\ud83d\ude00", "\\\\ud800"]}'
    found = job(body)
    assert_equal ["\u{fffd}x\u{fffd}", '😀', '\ud800'], found.args
    assert_equal body.b, found.raw
  end

  def test_what_ruby_reads_and_json_does_not_have
    ['{"class":"A" /* x */}', '{"class":"A","args":["\q"]}', '{"class":"A","args":[NaN]}', "{\"class\":\"A\"}\0"].each do |body|
      assert_raises(ArgumentError, body) { job(body) }
    end
    assert_equal ['http://a/b', "\n"], job('{"class":"A","args":["http://a/b","\n"]}').args
  end

  def test_members_twice_or_with_escapes_are_undecodable
    ['{"class":"A","class":"B"}', '{"\u0063lass":"A"}', '{"class":"A","jid":"\ud800"}', '{"class":"\ud800"}',
     '{"class":"A","args":[{"queue":"x"}],"queue":"a","queue":"b"}'].each do |body|
      assert_raises(ArgumentError, body) { job(body) }
    end
    assert_equal [{ 'class' => 1 }, 'class:'], job('{"args":[{"class":1},"class:"],"class":"A","x":1,"x":2}').args
  end

  # Two threads that load a digest at its first use fail. Four jobs were rejected because of this.
  def test_digests_are_loaded_before_threads_need_them
    lib = File.expand_path('../lib', __dir__)
    assert system(RbConfig.ruby, '-I', lib, '-r', 'millrace', '-e', 'exit Digest.const_defined?(:SHA256)')
  end

  def test_depth
    nested = ->(levels) { %({"class":"A","args":#{'[' * levels}#{']' * levels}}) }
    # A thread has the stack that handlers have.
    Thread.new { assert_equal 1, job(nested.call(900)).args.size }.join
    assert_raises(ArgumentError) { job(nested.call(1001)) }
  end

  def test_members_that_are_missing
    found = job('{"class":"A"}', headers: { 'traceparent' => 't' }, sent: 5.0)
    assert_equal Digest::SHA256.hexdigest('{"class":"A"}')[0, 24], found.jid
    assert_equal [[], 'q', 1, 0, 0, [], 't', 5.0],
                 [found.args, found.queue, found.attempt, found.retry_count, found.priority, found.tags, found.headers['traceparent'],
                  found.enqueued_at]
    refute_predicate found, :stopping?
    refute_predicate found, :cancelled?
  end

  def test_members_of_ones_own
    found = job('{"class":"A","args":[],"retry":3,"tenant":"acme","trace":{"id":1},"millrace":{}}')
    assert_equal({ 'tenant' => 'acme', 'trace' => { 'id' => 1 } }, found.fields)
    assert_equal({}, job.fields)
  end

  def test_it_waits_until_it_is_to_end
    found = job
    refute found.wait(0.001)
    thread = Thread.new { found.wait(60) }
    Thread.pass until thread.stop?
    found.signal(stopping: true)
    assert thread.value
    assert_equal [true, false, nil], [found.stopping?, found.cancelled?, found.end]
    found.signal(why: :timeout)
    found.signal(why: :cancelled)
    assert_equal [true, :timeout], [found.cancelled?, found.end], 'the first reason stays'
  end

  def test_the_trace_context_can_be_read
    trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    assert_equal trace, job(headers: { 'traceparent' => trace }).traceparent
    [{}, { 'traceparent' => "two\nlines" }, { 'traceparent' => 7 }].each { |headers| assert_nil job(headers: headers).traceparent }
  end
end
