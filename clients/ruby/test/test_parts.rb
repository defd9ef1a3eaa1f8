# frozen_string_literal: true

require_relative 'helper'

# Parts of a worker, each alone.
class TestParts < Minitest::Test
  include Helper

  def hand(queues)
    Hand.new(Lane.new('x', queues)).tap do |hand|
      [[1, 0], [0, 0], [1, 5], [1, 5], [0, 9]].each_with_index do |(queue, priority), tag|
        hand.put(queue, Hand::Arrival.new(tag, false, { priority: priority }, ''))
      end
    end
  end

  def test_strict_queues
    found = hand(%w[first second])
    assert_equal([4, 1, 2, 3, 0], Array.new(5) { found.take.last.tag })
    assert_equal 0, found.count
    assert_nil found.waits_since(0)
  end

  def test_weighted_queues
    firsts = (0...2000).count { hand({ 'often' => 9, 'rarely' => 1 }).take.first.zero? }
    assert_includes 1600..1980, firsts
  end

  def test_giving_back_a_queue
    found = hand(%w[first second])
    assert_equal [2, 3, 0], found.empty(1).map(&:tag)
    assert_equal 2, found.count
  end

  def test_metrics_wait_for_a_connection_and_are_dropped_and_counted
    metrics = Metrics.new
    10_003.times { |i| metrics.add(i.to_s) }
    assert_equal 3, metrics.dropped
    sent = []
    metrics.attach(->(body) { sent.size < 2 ? sent << JSON.parse(body) : raise(Connection::Lost, 'gone') })
    assert_equal [500, 500], sent.map(&:size)
    metrics.attach(->(body) { sent << JSON.parse(body) })
    assert_equal (0...10_000).to_a, sent.flatten
    assert metrics.flush
  end

  def test_metrics_are_sent_by_themselves
    metrics = Metrics.new
    sent = Thread::Queue.new
    metrics.attach(->(body) { sent << body })
    thread = Thread.new { metrics.run }
    metrics.add('1')
    assert_equal '[1]', sent.pop
    metrics.close
    thread.join
  end

  def test_a_metric_is_json
    found = job('{"class":"a\"b","jid":"é","enqueued_at":1}', 'q/ü')
    metric = JSON.parse(Metrics.record(found, Outcome.new(status: 'failed', error_class: "x\n"), 'h:1', 4.5, 0.5))
    assert_equal ['a"b', 'é', 'q/ü', "x\n", 500, 3000, 1, 4.5],
                 metric.values_at('job_class', 'jid', 'queue', 'error_class', 'duration_ms', 'wait_ms', 'attempt', 'timestamp')
    refute JSON.parse(Metrics.record(job('{"class":"A","enqueued_at":-1e10}'), Outcome::SUCCEEDED, 'me', 1e10, 0)).key?('wait_ms')
  end

  def test_a_late_job_is_ended
    timers = Timers.new
    task = Struct.new(:why) { define_method(:end) { |why| self.why = why } }.new
    Thread.new { timers.limit(task, 0.01) { Thread.pass until task.why } }.join
    assert_equal :timeout, task.why
    timers.close
  end

  def test_the_dead_are_forgotten
    begins = Begins.new
    [{ type: 'opened', process: 'a', queue: 'x', queues: ['q'], at: 1.0 }, { type: 'died', process: 'a', at: 2.0 },
     { type: 'begun', process: 'a', jid: 'j', body: 'b', blames: '', at: 2.0 }].each { |record| begins.apply(JSON.generate(record)) }
    key = Begins::Key.new('j', 'b')
    assert_equal 1, begins.deaths(key, 'me', [])
    1000.times { begins.apply(JSON.generate({ type: 'else', process: 'b', at: Begins::MEMORY + 3.0 })) }
    assert_equal [0, ''], [begins.deaths(key, 'me', []), begins.blame(key, 'q', 'me', nil, ['x'])]
    assert_nil begins.apply('[' * 100_000)
    assert_nil begins.apply('{"process":5}')
  end

  def test_a_bell_wakes_who_waits
    bell = Bell.new
    rung = false
    waiting = Thread.new { bell.wait(60) { rung } }
    Thread.pass until waiting.stop?
    rung = true
    bell.ring
    assert waiting.value
    refute(bell.wait(0.001) { false })
  end

  def test_headers_that_cannot_be_read
    header = ->(table) { AMQ::Protocol::HeaderFrame.new([60, 0, 5, 0x2000, table.bytesize].pack('nnQ>nN') + table, 1) }
    reader = Class.new do
      attr_accessor :frame

      def read_next_frame(*) = frame
    end.new.extend(BunnySession::Lenient)
    { "\x01aS\0\0\0\x01x" => { headers: { 'a' => 'x' } }, "\x01au\0\x01" => {} }.each do |table, properties|
      reader.frame = header.call(table.b)
      frame = reader.read_next_frame
      assert_equal [5, properties], [frame.body_size, frame.decode_payload]
    end
    reader.frame = AMQ::Protocol::BodyFrame.new('x', 1)
    assert_equal 'x', reader.read_next_frame.decode_payload
  end

  def test_certificates_are_looked_at
    settings = ->(url) { Connection.settings(url).values_at(:verify_peer, :verify, :heartbeat) }
    assert_equal [true, false, 10], settings.call('amqps://h')
    assert_equal [true, false, 5], settings.call('amqps://h?heartbeat=5')
    assert_equal [nil, false, 10], settings.call('amqps://h?verify=false&heartbeat=60')
  end

  def test_a_trailing_slash_is_the_default_virtual_host
    vhosts = { '' => '/', '/' => '/', '/?heartbeat=5' => '/', '/%2F' => '/', '/shop' => 'shop' }
    vhosts.each { |path, vhost| assert_equal vhost, Connection.settings("amqp://guest:guest@h:5672#{path}")[:vhost], path }
    assert_equal '/', Connection.settings('amqps://h/?verify=false')[:vhost]
  end

  def test_what_is_lost_says_why
    error = begin
      begin
        raise Errno::ECONNREFUSED
      rescue SystemCallError
        raise Bunny::TCPConnectionFailedForAllHosts
      end
    rescue Bunny::TCPConnectionFailedForAllHosts => e
      e
    end
    lost = Connection::Lost.new(error)
    assert_equal ['Connection refused (Errno::ECONNREFUSED)', nil, false], [lost.message, lost.code, lost.unwelcome?]
    assert_predicate Connection::Lost.new(Bunny::AuthenticationFailureError.new('u', '/', 1)), :unwelcome?
  end
end
