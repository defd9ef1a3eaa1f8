# frozen_string_literal: true

require 'millrace'
require 'opentelemetry'

module Millrace
  # OpenTelemetry: a span for each job that is enqueued, and one for each attempt. It needs the gem
  # `opentelemetry-api`, and a program that configures OpenTelemetry. Names and attributes follow
  # the semantic conventions of messaging systems.
  #
  # @example
  #   require 'millrace/otel'
  #   Millrace::Tracing.client(Millrace.client)
  #   Millrace.configure_worker { |worker| Millrace::Tracing.worker(worker) }
  module Tracing
    # The W3C format of a trace context: version, trace, span and flags.
    FORMAT = /\A\h{2}-(\h{32})-(\h{16})-(\h{2})/
    PARENTS = %i[auto child link].freeze
    private_constant :FORMAT, :PARENTS

    module_function

    # Makes a client begin a span `publish <queue>` for each job that it enqueues. If the job has a
    # traceparent, for instance from an outbox, that is the parent of the span. In
    # {Client#enqueue_bulk}, the span ends when the job is sent.
    # @param client [Client]
    # @param tracer_provider the one of `OpenTelemetry` by default
    # @return [Client]
    def client(client, tracer_provider: ::OpenTelemetry.tracer_provider)
      tracer = tracer_provider.tracer('millrace-jobs', VERSION)
      client.use { |job, next_one| publish(tracer, job, next_one) }
    end

    # Makes a worker begin a span `process <queue>` for each attempt. Add it before other middleware,
    # so that the span has theirs in it.
    # @param worker [Worker]
    # @param parent [Symbol] how the span refers to the one that enqueued the job. A `:child` is in
    #   the same trace. With `:link`, the span begins a trace of its own, and has a link. `:auto`
    #   makes a child of the first attempt of a job that was not scheduled, and links all others:
    #   they may come days later
    # @return [Worker]
    def worker(worker, parent: :auto, tracer_provider: ::OpenTelemetry.tracer_provider)
      raise ArgumentError, "parent must be :auto, :child or :link, not #{parent.inspect}" unless PARENTS.include?(parent)

      tracer = tracer_provider.tracer('millrace-jobs', VERSION)
      worker.use do |job, next_one|
        first = job.retry_count.zero? && !job.members.key?('created_at')
        process(tracer, job, next_one, parent == :child || (parent == :auto && first))
      end
      worker
    end

    # @private
    def publish(tracer, job, next_one)
      queue = job.options.fetch(:queue, Wire::DEFAULT_QUEUE)
      own = sender(job.options[:traceparent])
      ::OpenTelemetry::Context.with_current(own ? within(own) : ::OpenTelemetry::Context.current) do
        tracer.in_span("publish #{queue}", kind: :producer, attributes: attributes('publish', 'send', queue, job.job_class)) do |span|
          job.options = job.options.merge(traceparent: traceparent(span.context)) if span.context.valid?
          next_one.call.tap { |jid| span.set_attribute('messaging.message.id', jid) if jid }
        end
      end
    end

    # @private
    def process(tracer, job, next_one, child)
      sender = sender(job.traceparent)
      parent = sender && child ? within(sender) : ::OpenTelemetry::Context::ROOT
      span = tracer.start_span("process #{job.queue}", kind: :consumer, with_parent: parent,
                                                       links: sender && !child ? [::OpenTelemetry::Trace::Link.new(sender)] : nil,
                                                       attributes: attributes('process', 'process', job.queue, job.job_class)
                                                         .merge('messaging.message.id' => job.jid, 'millrace.attempt' => job.attempt))
      ::OpenTelemetry::Trace.with_span(span) { next_one.call }
    rescue Discard, HandBack # what decides about a job is no error of the program
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException -- it is raised again
      failed(span, e)
      raise
    ensure
      span&.finish
    end

    # @private
    def failed(span, error)
      span&.record_exception(error)
      span&.set_attribute('error.type', error.class.to_s)
      span&.status = ::OpenTelemetry::Trace::Status.error("#{error.class}: #{error.message}")
    end

    # Returns the span that a trace context names, or nil if it names none.
    # @private
    def sender(traceparent)
      found = FORMAT.match(traceparent.to_s) or return
      flags = ::OpenTelemetry::Trace::TraceFlags.from_byte(found[3].hex & 1)
      context = ::OpenTelemetry::Trace::SpanContext.new(trace_id: [found[1]].pack('H*'), span_id: [found[2]].pack('H*'),
                                                        trace_flags: flags, remote: true)
      context if context.valid?
    end

    # Returns a context in which a span is the parent of the next one.
    # @private
    def within(sender)
      span = ::OpenTelemetry::Trace.non_recording_span(sender)
      ::OpenTelemetry::Trace.context_with_span(span, parent_context: ::OpenTelemetry::Context::ROOT)
    end

    # @private
    def traceparent(context)
      "00-#{context.hex_trace_id}-#{context.hex_span_id}-#{context.trace_flags.sampled? ? '01' : '00'}"
    end

    # @private
    def attributes(operation, type, queue, job_class)
      { 'messaging.system' => 'rabbitmq', 'messaging.operation.name' => operation, 'messaging.operation.type' => type,
        'messaging.destination.name' => queue, 'millrace.class' => job_class }
    end
  end
end
