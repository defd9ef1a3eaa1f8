# frozen_string_literal: true

require 'millrace/sidekiq'

# Sidekiq's module, with what tests use.
module Sidekiq
  if ENV.fetch('RAILS_ENV', ENV.fetch('RACK_ENV', 'test')) == 'production'
    Millrace.logger.warn('millrace/sidekiq/testing is loaded in production: jobs are collected in memory, and not enqueued')
  end

  # Sidekiq's modes for tests. `fake!` collects jobs in {Queues}, `inline!` runs them when they are
  # enqueued, `disable!` publishes them. To require this file is to choose `fake!`.
  module Testing
    MODES = %i[fake inline disable].freeze
    private_constant :MODES

    @mode = :fake
    @server = Middleware::Chain.new

    class << self
      MODES.each do |mode|
        # With a block, the mode holds for the block, in this thread.
        define_method("#{mode}!") { |&block| choose(mode, &block) }
      end

      # @return [Boolean]
      def fake?
        mode == :fake
      end

      # @return [Boolean]
      def inline?
        mode == :inline
      end

      # @return [Boolean]
      def enabled?
        mode != :disable
      end

      # @return [Boolean]
      def disabled?
        !enabled?
      end

      # @yieldparam chain [Middleware::Chain]
      # @return [Middleware::Chain] what is called for each job that runs in a test. Middleware of
      #   {Config#server_middleware} is not called in tests
      def server_middleware
        yield @server if block_given?
        @server
      end

      private

      def mode
        Thread.current[:millrace_sidekiq_mode] || @mode
      end

      def choose(mode)
        return @mode = mode unless block_given?

        before = Thread.current[:millrace_sidekiq_mode]
        begin
          Thread.current[:millrace_sidekiq_mode] = mode
          yield
        ensure
          Thread.current[:millrace_sidekiq_mode] = before
        end
      end
    end

    # Collects or runs what a client would publish.
    module Delivery
      # @private
      def deliver(items)
        return super if Testing.disabled?

        # Checks each job as a client does, and passes it through JSON.
        items.each { |item| new_job(item).prepare(Time.now.to_f) }
        copies = items.map { |item| Sidekiq.load_json(Sidekiq.dump_json(item)) }
        copies.each { |item| Testing.inline? ? Object.const_get(item['class']).process_job(item) : Queues.push(item) }
        copies.map { |item| item['jid'] }
      end
    end
    Client.singleton_class.prepend(Delivery)

    # Runs jobs with the middleware of tests.
    module Run
      # @private
      def run(job_class, item, job = nil)
        job || Testing.disabled? ? super : super(job_class, item, nil, Testing.server_middleware)
      end
    end
    Running.singleton_class.prepend(Run)
  end

  # Raised by `perform_one` without a job.
  class EmptyQueueError < RuntimeError; end

  # The jobs that `fake!` collects: hashes, by queue.
  module Queues
    @jobs = []

    class << self
      # @private
      def push(item)
        item['at'] ? item['created_at'] = Time.now.to_f : item['enqueued_at'] = Time.now.to_f
        @jobs << item
      end

      # @return [Array<Hash>] the jobs of a queue
      def [](queue)
        @jobs.select { |item| item['queue'] == queue.to_s }
      end

      # @return [Hash{String => Array<Hash>}]
      def jobs_by_queue
        @jobs.group_by { |item| item['queue'] }
      end

      # @return [Hash{String => Array<Hash>}]
      def jobs_by_class
        @jobs.group_by { |item| item['class'] }
      end

      # @private
      def all
        @jobs
      end

      # Removes the jobs of a queue and a class.
      def clear_for(queue, job_class)
        @jobs.reject! { |item| item['queue'] == queue.to_s && item['class'] == job_class.to_s }
      end

      # Removes a job.
      def delete_for(jid, queue = nil, _job_class = nil)
        @jobs.reject! { |item| item['jid'] == jid && (queue.nil? || item['queue'] == queue.to_s) }
      end

      # Removes all jobs.
      def clear_all
        @jobs.clear
      end
    end
  end

  # The methods of tests.
  module Job
    class << self
      # @return [Array<Hash>] all jobs that were collected
      def jobs
        Queues.all.dup
      end

      # Removes all jobs.
      def clear_all
        Queues.clear_all
      end

      # Runs all jobs, and those that they enqueue.
      def drain_all
        while (item = Queues.all.shift)
          Object.const_get(item['class']).process_job(item)
        end
      end
    end

    # The methods of a job class in tests.
    module ClassMethods
      # @return [String]
      def queue
        get_sidekiq_options.fetch('queue', 'default').to_s
      end

      # @return [Array<Hash>] the jobs of this class
      def jobs
        Queues.all.select { |item| item['class'] == name }
      end

      # Removes the jobs of this class.
      def clear
        Queues.all.reject! { |item| item['class'] == name }
      end

      # Runs all jobs of this class, and those of this class that they enqueue.
      def drain
        perform_one while jobs.any?
      end

      # Runs the first job of this class.
      # @raise [EmptyQueueError] if there is none
      def perform_one
        item = jobs.first or raise EmptyQueueError, "no job of #{name} was enqueued"

        Queues.delete_for(item['jid'], item['queue'])
        process_job(item)
      end

      # Runs a job that is a hash.
      def process_job(item)
        Running.run(self, item)
      end

      # Calls `perform` of a new instance.
      def execute_job(one, args)
        one.perform(*args)
      end
    end
  end
end
