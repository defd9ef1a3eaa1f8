require 'bunny'
require 'json'

class Worker
  def initialize(amqp_url, queues, concurrency: 5)
    @connection = Bunny.new(amqp_url)
    @connection.start
    @queues = queues
    @concurrency = concurrency
    @job_registry = {}
  end

  def register_job(job_class_name, &block)
    @job_registry[job_class_name] = block
  end

  def start
    # Spawn heartbeat thread
    Thread.new { heartbeat_loop }

    # Spawn worker threads
    @concurrency.times.map do |i|
      Thread.new { worker_loop(i) }
    end.each(&:join)
  end

  private

  def worker_loop(worker_id)
    channel = @connection.create_channel
    channel.prefetch(1)

    @queues.each do |queue_name|
      queue = channel.queue(queue_name, durable: true)

      queue.subscribe(manual_ack: true) do |delivery_info, properties, body|
        job = JSON.parse(body)
        start_time = Time.now

        begin
          # Execute job
          job_handler = @job_registry[job['class']]
          raise "Unknown job class: #{job['class']}" unless job_handler

          job_handler.call(*job['args'])

          # Success - ack and report metric
          channel.ack(delivery_info.delivery_tag)
          report_metric(job, (Time.now - start_time) * 1000, 'success')

        rescue => e
          # Handle retry or dead letter
          handle_job_failure(channel, job, e, delivery_info)
        end
      end
    end

    sleep # Keep thread alive
  end

  def handle_job_failure(channel, job, error, delivery_info)
    retry_count = job['retry_count'] || 0
    max_retries = job['retry'] || 25

    if retry_count < max_retries
      # Calculate backoff
      backoff = (retry_count ** 4) + 15 + rand(30 * (retry_count + 1))

      # Publish to retries stream
      retry_msg = {
        type: 'retry',
        jid: job['jid'],
        retry_at: Time.now.to_f + backoff,
        retry_count: retry_count + 1,
        failed_at: Time.now.to_f,
        error_message: error.message,
        error_class: error.class.name,
        job: job
      }

      channel.default_exchange.publish(
        retry_msg.to_json,
        routing_key: 'retries',
        persistent: true
      )
    else
      # Publish to dead_jobs stream
      dead_msg = {
        type: 'dead_job',
        jid: job['jid'],
        died_at: Time.now.to_f,
        retry_count: retry_count,
        error_message: error.message,
        error_class: error.class.name,
        backtrace: error.backtrace.join("\n"),
        job: job
      }

      channel.default_exchange.publish(
        dead_msg.to_json,
        routing_key: 'dead_jobs',
        persistent: true
      )
    end

    # Ack original message
    channel.ack(delivery_info.delivery_tag)
    report_metric(job, 0, 'failed')
  end

  def report_metric(job, duration_ms, status)
    metric = {
      type: 'job_metric',
      timestamp: Time.now.to_f,
      job_class: job['class'],
      queue: job['queue'],
      duration_ms: duration_ms.to_i,
      status: status,
      worker_identity: "#{Socket.gethostname}:#{Process.pid}:prod"
    }

    channel = @connection.create_channel
    channel.default_exchange.publish(
      metric.to_json,
      routing_key: 'job_metrics',
      persistent: true
    )
  end

  def heartbeat_loop
    loop do
      sleep 10

      heartbeat = {
        type: 'heartbeat',
        identity: "#{Socket.gethostname}:#{Process.pid}:prod",
        hostname: Socket.gethostname,
        pid: Process.pid,
        tag: 'production',
        concurrency: @concurrency,
        busy: @busy_count || 0,
        beat: Time.now.to_f,
        rss_kb: `ps -o rss= -p #{Process.pid}`.to_i,
        queues: @queues,
        version: '1.0.0'
      }

      channel = @connection.create_channel
      channel.default_exchange.publish(
        heartbeat.to_json,
        routing_key: 'heartbeats',
        persistent: true
      )
    end
  end
end

# Usage
worker = Worker.new('amqp://localhost', ['critical', 'default'], concurrency: 10)

worker.register_job('SendEmailJob') do |email, message|
  # Send email logic
  puts "Sending email to #{email}: #{message}"
end

worker.register_job('ProcessImageJob') do |image_id|
  # Image processing logic
  puts "Processing image #{image_id}"
end

worker.start
