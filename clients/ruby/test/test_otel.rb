# frozen_string_literal: true

require_relative 'helper'

# Spans of OpenTelemetry, with its SDK. Neither RubyGems nor Debian is sure to have the SDK where
# tests run, so they run where it is installed.
class TestOtel < Minitest::Test
  include Helper

  def setup
    begin
      require 'opentelemetry-sdk'
    rescue LoadError
      skip 'the gem opentelemetry-sdk is not installed'
    end
    require 'millrace/otel'
    sdk = ::OpenTelemetry::SDK::Trace
    @spans = sdk::Export::InMemorySpanExporter.new
    @provider = sdk::TracerProvider.new(sampler: sdk::Samplers::ALWAYS_ON)
    @provider.add_span_processor(sdk::Export::SimpleSpanProcessor.new(@spans))
  end

  def worker(**options)
    worker = Millrace::Tracing.worker(Worker.new(NOWHERE), tracer_provider: @provider, **options)
    worker.handle('Greet') do |job|
      @seen = ::OpenTelemetry::Trace.current_span.context.span_id
      raise IndexError, 'no such name' if job.args == ['fails'] && job.retry_count.zero?
      raise Discard, 'not wanted' if job.args == ['discarded']
    end
    worker
  end

  def fake(**options)
    Millrace::Tracing.client(Testing::Fake.new(worker(**options)), tracer_provider: @provider)
  end

  def named(name)
    @spans.finished_spans.select { |span| span.name == name }
  end

  def root?(span)
    span.parent_span_id == ::OpenTelemetry::Trace::INVALID_SPAN_ID
  end

  def test_a_job_and_its_attempt_are_one_trace
    client = fake
    jid = client.enqueue('Greet', ['Ann'], queue: 'mail')
    client.drain
    sent = named('publish mail').first
    ran = named('process mail').first
    assert_equal %i[producer consumer], [sent.kind, ran.kind]
    assert_equal [sent.trace_id, sent.span_id, @seen], [ran.trace_id, ran.parent_span_id, ran.span_id]
    shared = { 'messaging.system' => 'rabbitmq', 'messaging.destination.name' => 'mail',
               'messaging.message.id' => jid, 'millrace.class' => 'Greet' }
    assert_equal({ **shared, 'messaging.operation.name' => 'publish', 'messaging.operation.type' => 'send' }, sent.attributes)
    ran_as = { 'messaging.operation.name' => 'process', 'messaging.operation.type' => 'process', 'millrace.attempt' => 1 }
    assert_equal({ **shared, **ran_as }, ran.attributes)
    refute_equal ::OpenTelemetry::Trace::Status::ERROR, ran.status.code
  end

  def test_a_trace_context_of_your_own_is_the_parent
    fake.enqueue('Greet', [], traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')
    sent = named('publish default').first
    assert_equal '0af7651916cd43dd8448eb211c80319c', sent.trace_id.unpack1('H*')
    assert_equal 'b7ad6b7169203331', sent.parent_span_id.unpack1('H*')
  end

  def test_scheduled_jobs_and_retries_are_linked
    client = fake
    client.enqueue_in(60, 'Greet', ['fails'])
    client.drain(retries: true)
    sent = named('publish default').first
    attempts = named('process default')
    assert_equal([1, 2], attempts.map { |span| span.attributes['millrace.attempt'] })
    attempts.each do |span|
      assert root?(span)
      assert_equal([sent.span_id], span.links.map { |link| link.span_context.span_id })
    end
    assert_equal [false, 'exception'], [attempts[0].status.ok?, attempts[0].events.first.name]
  end

  def test_the_parent_can_be_chosen
    client = fake(parent: :child)
    client.enqueue_in(60, 'Greet')
    client.drain
    assert_equal named('publish default').first.span_id, named('process default').first.parent_span_id
    @spans.reset
    client = fake(parent: :link)
    client.enqueue('Greet')
    client.drain
    assert root?(named('process default').first)
    assert_raises(ArgumentError) { worker(parent: :other) }
  end

  def test_a_decision_about_a_job_is_no_error
    client = fake
    client.enqueue('Greet', ['discarded'])
    client.drain
    ran = named('process default').first
    assert_equal [::OpenTelemetry::Trace::Status::UNSET, nil], [ran.status.code, ran.events]
  end

  def test_a_job_without_a_usable_trace_context
    client = Testing::Fake.new(worker)
    client.enqueue('Greet')
    client.enqueue('Greet', [], traceparent: 'nonsense')
    client.drain
    named('process default').each { |span| assert root?(span) && span.links.nil? }
  end
end
