# frozen_string_literal: true

require_relative 'helper'

# All vectors of clients/conformance.
class TestVectors < Minitest::Test
  include Helper

  def self.each_case(file, &block)
    Vectors.cases(file).each do |vector|
      define_method("test_#{file}_#{vector['name'].gsub(/\W+/, '_')}") { instance_exec(vector, &block) }
    end
  end

  each_case('hosts') do |c|
    if c['error']
      assert_equal c['error'], assert_raises(ArgumentError) { Urls.split(c['urls']) }.message
    else
      assert_equal c['hosts'], Urls.split(c['urls'])
    end
  end

  each_case('host_order') do |c|
    orders = Array.new(200) { Hosts.try_order(c['hosts'], c['good'], lost: c['lost']) }
    orders.each do |order|
      rest = order.dup
      c['order'].each { |group| assert_equal group.sort, rest.shift(group.size).sort }
      assert_empty rest
    end
    assert_equal c['order'].first.sort, orders.filter_map(&:first).uniq.sort, 'each comes first at times'
  end

  def obeys(worker, messages)
    messages.each { |message| Control.obey(worker, message.gsub('IDENTITY', worker.identity)) }
  end

  each_case('control') do |c|
    worker = Worker.new(NOWHERE, queues: %w[a b])
    obeys(worker, c['messages'])
    assert_equal [c['state'], c['paused']], [worker.state, worker.paused.sort]
  end

  # Returns a worker with the settings of a vector.
  def worker_of(settings)
    lanes = settings.fetch('lanes', []).map { |lane| Lane.new(lane['name'], lane['queues'], concurrency: lane['concurrency']) }
    Worker.new(NOWHERE, lanes: lanes, **settings.except('lanes').transform_keys(&:to_sym))
  end

  each_case('heartbeat') do |c|
    worker = worker_of(c['worker'])
    obeys(worker, c['messages'])
    beat = JSON.parse(Wire.dump(Heartbeat.describe(worker, c['rtt_us'])))
    own = beat.slice('identity', 'hostname', 'pid', 'beat', 'rss_kb', 'started_at')
    assert_equal c['heartbeat'], beat.except(*own.keys)
    assert_equal [Socket.gethostname, Process.pid, 6], [*own.values_at('hostname', 'pid'), own.size]
    assert_equal c['identity'].sub('HOSTNAME', own['hostname']).sub('PID', own['pid'].to_s), own['identity']
    assert_operator own['started_at'], :<=, own['beat']
    assert_kind_of Integer, own['rss_kb']
  end

  each_case('metrics') do |c|
    delivery = c['delivery']
    read = job(delivery['body'], delivery['queue'], message_id: delivery['message_id'], sent: delivery['timestamp']&.to_f)
    assert_equal c['metric'], JSON.parse(Metrics.record(read, Outcome::SUCCEEDED, 'me', c['ended'], c['took']))
  end

  each_case('backoff') do |c|
    assert_equal c['min'], Backoff.default(c['retry_count'], &:min)
    assert_equal c['max'], Backoff.default(c['retry_count'], &:max)
  end

  each_case('splice') do |c|
    outcome = failed(job(Vectors.body(c), c['queue']), RuntimeError.new('x'))
    without_job(outcome.record, c['job'])
  end

  each_case('undecodable') do |c|
    unless c['decodable']
      assert_raises(ArgumentError) { job(Vectors.body(c)) }
      next
    end
    found = job(Vectors.body(c), message_id: 'none')
    assert_equal c['jid'].empty? ? 'none' : c['jid'], found.jid
    assert_equal c.values_at('class', 'retry', 'retry_count'), [found.job_class, found.retries, found.retry_count]
  end

  # Checks the message that a client publishes.
  def check_published(vector)
    options = { jid: vector['jid'] }.merge(vector['options'].transform_keys(&:to_sym))
    new_job = NewJob.new(vector['class'], vector['args'], at: vector['at'], **options)
    return assert_raises(Invalid) { new_job.prepare(vector['now']) } if vector['error']

    jid, message = new_job.prepare(vector['now'])
    assert_equal [options[:jid], *vector.values_at('exchange', 'routing_key')], [jid, message.exchange, message.key]
    assert_equal vector['body'], JSON.parse(message.body)
    wanted = vector['properties'].slice('type', 'message_id', 'priority', 'headers', 'mandatory')
    assert_equal(wanted, wanted.to_h { |name, _| [name, message[name]] })
  end

  each_case('publish') { |c| check_published(c) }
  each_case('unique') { |c| check_published(c) }

  each_case('queues') do |c|
    queue = GovernedQueue.new(c['queue']['name'], **c['queue'].except('name').transform_keys(&:to_sym))
    if c['error']
      assert_raises(Invalid) { queue.definition }
    else
      assert_equal c['queue'], queue.definition
    end
  end

  each_case('messages') do |c|
    options = { jid: c['jid'] }.merge(c['options'].transform_keys(&:to_sym))
    given = c['message']
    body = Vectors.body(given) || ''
    properties = given.fetch('properties', {}).transform_keys(&:to_sym)
    prepare = lambda do
      Message.job(c['at'], given['exchange'], given.fetch('routing_key', ''), body, properties, options).prepare(c['now'])
    end
    if c['error']
      assert_raises(Invalid) { prepare.call }
      next
    end
    jid, message = prepare.call
    assert_equal [options[:jid], '', 'scheduled_jobs'], [jid, message.exchange, message.key]
    assert_equal c['record'], JSON.parse(message.body)
  end

  each_case('poison') do |c|
    begins = Begins.new
    c['stream'].each { |record| begins.apply(JSON.generate(record).b) }
    key = Begins::Key.new(c['key']['jid'], c['key']['body'])
    blames = begins.blame(key, c['queue'], c['self'], c['enqueued_at'], c['gone'])
    assert_equal c['blames'], blames
    begins.begun(key, c['self'], blames, Time.now.to_f)
    assert_equal c['deaths'], begins.deaths(key, c['self'], c['gone'])
  end

  each_case('outcomes') do |c|
    d = c['delivery']
    if c['outcome']['kind'] == 'undecodable'
      assert_raises(ArgumentError) { job(d['body'], d['queue']) }
      next
    end
    found = job(d['body'], d['queue'], headers: d['headers'], message_id: d['message_id'])
    check_outcome(c, found, outcome_of(c, found))
  end

  private

  def check_outcome(vector, job, outcome)
    same vector['stream'], outcome.stream
    check_record(vector, outcome.record) if outcome.record
    same vector['record'].nil?, outcome.record.nil?
    assert_equal vector['headers'], Wire.trace_headers(job.headers['traceparent']) if outcome.record
    assert_equal vector['then'].to_sym, outcome.answer
    vector['metric'] ? check_metric(vector, job, outcome) : assert_nil(outcome.status)
  end

  def check_metric(vector, job, outcome)
    written = JSON.parse(Metrics.record(job, outcome, 'me', vector['now'], 0.0))
    assert_equal vector['metric'], written.slice(*vector['metric'].keys)
    assert_equal vector['metric'].key?('error_class'), written.key?('error_class')
  end

  def same(wanted, got)
    wanted.nil? ? assert_nil(got) : assert_equal(wanted, got)
  end

  # Returns the rest of a record that has exactly these bytes as its job.
  def without_job(record, job)
    tail = ",\"job\":#{job}}".b
    assert record.end_with?(tail), record
    JSON.parse("#{record.delete_suffix(tail)}}")
  end

  def check_record(vector, record)
    got = without_job(record, vector['job'])
    assert_equal vector['record'].keys.sort, got.keys.sort
    vector['record'].each do |name, value|
      value.is_a?(Hash) ? assert_includes(value['min']..value['max'], got[name], name) : assert_equal(value, got[name], name)
    end
  end

  def outcome_of(vector, job)
    kind = vector['outcome']
    now = vector['now']
    case kind['kind']
    when 'success' then Outcome::SUCCEEDED
    when 'expired'
      assert job.expired?(now)
      Outcome::Judge.expired(job, now)
    when 'poison' then Outcome::Judge.poisoned(job, kind['deaths'], now)
    else failed(job, error_of(kind, job), now, stopping: kind.fetch('stopping', false))
    end
  end

  def error_of(kind, job)
    case kind['kind']
    when 'fail' then said(kind)
    when 'retry_in' then RetryIn.new(kind['seconds'], said(kind))
    when 'discard' then Discard.new('why not')
    when 'kill' then Kill.new(kind['message'])
    when 'hand_back' then HandBack.new
    when 'unknown_class' then UnknownClass.new(job.job_class)
    when 'timeout' then Timeout.new(kind['seconds'])
    end
  end

  def said(kind)
    Outcome::Said.new(kind['error_class'], kind['error_message']).tap { |error| error.set_backtrace(kind['backtrace']) }
  end
end
