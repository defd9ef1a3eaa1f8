# frozen_string_literal: true

require 'json'
require 'securerandom'

module Sidekiq
  # Enqueues jobs that are hashes, as Sidekiq's client does. {Millrace.client} publishes them.
  class Client
    # Options of a {Millrace::NewJob} that Sidekiq's jobs have under the same name.
    OPTIONS = %w[queue priority tags jid timeout dead backtrace limited limit_key].freeze
    # Members that Millrace sets, or that have a meaning in one process only.
    OURS = %w[class args at retry created_at enqueued_at retry_count pool log_level expires_in].freeze
    # Options of Sidekiq whose meaning Millrace does not have.
    MISSING = { 'retry_for' => 'use retry, a number', 'retry_queue' => 'a retry returns to its queue',
                'unique_for' => 'unique jobs are not supported', 'encrypt' => 'encrypted arguments are not supported',
                'bid' => 'batches are not supported' }.freeze
    private_constant :OPTIONS, :OURS, :MISSING

    class << self
      # Enqueues one job.
      # @param item [Hash] `class`, `args`, and options
      # @return [String, nil] the jid; nil if middleware stopped the job
      # @raise (see Millrace::Client#enqueue)
      def push(item)
        new.push(item)
      end

      # Enqueues a job for each array in `args`.
      # @param items [Hash] `class`, `args`, and options. `at` is one time, or one for each job
      # @return [Array<String, nil>] the jids
      # @raise (see Millrace::Client#enqueue_bulk)
      def push_bulk(items)
        new.push_bulk(items)
      end

      # Enqueues a job of a class.
      def enqueue(job_class, *args)
        job_class.perform_async(*args)
      end

      # Enqueues a job of a class in another queue.
      def enqueue_to(queue, job_class, *args)
        job_class.set(queue: queue).perform_async(*args)
      end

      # Enqueues a job that is due after some time.
      def enqueue_in(interval, job_class, *args)
        job_class.perform_in(interval, *args)
      end

      # Enqueues a job in another queue that is due after some time.
      def enqueue_to_in(queue, interval, job_class, *args)
        job_class.set(queue: queue).perform_in(interval, *args)
      end

      # Returns a job with all of its options, before middleware.
      # @private
      def normalize(item)
        item = item.transform_keys(&:to_s)
        complete = item['class'] && item['args'].is_a?(Array)
        raise ArgumentError, "a job needs 'class' and an array 'args': #{item.inspect[0, 200]}" unless complete

        job_class = item['class']
        own = job_class.respond_to?(:get_sidekiq_options) ? job_class.get_sidekiq_options : Sidekiq.default_job_options
        item = own.merge(item)
        MISSING.each { |name, why| raise ArgumentError, "#{name}: #{why}" if item[name] }
        item.merge('class' => job_class.to_s, 'queue' => item['queue'].to_s, 'jid' => item['jid'] || SecureRandom.hex(12),
                   'created_at' => item['created_at'] || Time.now.to_f)
      end

      # Publishes jobs that middleware has let through.
      # @private
      def deliver(items)
        new_jobs = items.map { |item| new_job(item) }
        new_jobs.size == 1 ? [Millrace.client.push(new_jobs.first)] : Millrace.client.enqueue_bulk(new_jobs)
      end

      # Returns a job in Millrace's form.
      # @private
      def new_job(item)
        options = item.slice(*OPTIONS).compact.transform_keys(&:to_sym)
        options[:tags] = options[:tags].map(&:to_s) if options[:tags]
        options.merge!(retry_of(item))
        options[:expires_at] = (item['at'] || Time.now.to_f) + item['expires_in'].to_f if item['expires_in']
        fields = item.except(*OPTIONS, *OURS)
        options[:fields] = Sidekiq.load_json(Sidekiq.dump_json(fields)) unless fields.empty? # `lock: :until_executed`, for example
        Millrace::NewJob.new(item['class'], item['args'], at: item['at'], **options)
      end

      private

      # With `retry: false`, or nil, Sidekiq drops a job that fails: it becomes no dead job.
      def retry_of(item)
        item['retry'] ? { retry: item['retry'] } : { retry: false, dead: item['dead'] || false }
      end
    end

    # The settings of Sidekiq's client, such as a Redis pool, mean nothing here.
    def initialize(*_args, **_options); end

    # (see Client.push)
    def push(item)
      payload = through(item) or return

      Client.deliver([payload]).first
    end

    # (see Client.push_bulk)
    def push_bulk(items)
      payloads = each_of(items.transform_keys(&:to_s)).map { |item| through(item) }
      jids = payloads.compact.empty? ? [] : Client.deliver(payloads.compact)
      payloads.map { |payload| payload && jids.shift }
    end

    # Completes a job, calls middleware, and returns the job if it may be enqueued.
    # @private
    def through(item)
      item = Client.normalize(given = item.transform_keys(&:to_s))
      Sidekiq.config.client_middleware.invoke(given['class'], item, item['queue'], nil) { item } || nil
    end

    private

    # Returns the jobs of a bulk, one by one.
    def each_of(items)
      all = items['args']
      raise ArgumentError, "'args' must be an array of arrays" unless all.is_a?(Array) && all.all?(Array)

      raise ArgumentError, "'jid' is the id of one job, and there are #{all.size}" if items['jid'] && all.size > 1

      times = items['at'].is_a?(Array) ? items['at'] : [items['at']] * all.size
      raise ArgumentError, "'at' must have as many times as there are jobs" unless times.size == all.size

      one = items.except('at', 'args', 'batch_size')
      all.zip(times).map { |args, at| one.merge({ 'args' => args, 'at' => at }.compact) }
    end
  end
end
