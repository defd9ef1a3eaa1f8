# frozen_string_literal: true

module Sidekiq
  # A class that includes this module runs jobs in its method `perform`.
  #
  # @example
  #   class HardJob
  #     include Sidekiq::Job
  #     sidekiq_options queue: 'mail', retry: 5
  #     sidekiq_retry_in { |count, _error, _job| 10 * (count + 1) }
  #     sidekiq_retries_exhausted { |job, error| warn "gave up #{job['jid']}: #{error.message}" }
  #
  #     def perform(name)
  #       puts "Hello #{name}"
  #     end
  #   end
  #
  #   HardJob.perform_async('Ann')
  module Job
    # @return [String] the id of the job that runs
    attr_accessor :jid
    # @return [Millrace::Job, nil] the job that runs, nil outside a worker. A long job asks it
    #   whether to end: `millrace_job&.cancelled?`
    attr_accessor :millrace_job

    # @private
    def self.included(base)
      active = base.ancestors.any? { |ancestor| ancestor.name == 'ActiveJob::Base' }
      raise ArgumentError, "#{base} is an ActiveJob: Sidekiq::Job cannot be included in it" if active

      base.extend(ClassMethods)
    end

    # @return [Logger]
    def logger
      Sidekiq.logger
    end

    # @return [Boolean] whether the job should end, because its worker is stopping or it was
    #   cancelled
    def interrupted?
      job = millrace_job
      !job.nil? && (job.stopping? || job.cancelled?)
    end

    # The class methods of a class that includes {Job}.
    module ClassMethods
      # Sets options for all jobs of this class.
      # @param options `queue`, `retry`, `dead`, `backtrace`, `tags`, `expires_in`; of Millrace,
      #   `priority`, `timeout`, `limited` and `limit_key`. Other options become members of the job
      # @return [Hash{String => Object}] all options
      def sidekiq_options(options = {})
        @sidekiq_options = own_sidekiq_options.merge(options.transform_keys(&:to_s))
        get_sidekiq_options
      end

      # @return [Hash{String => Object}] the options of this class, of those that it inherits from, and
      #   of all jobs
      def get_sidekiq_options # rubocop:disable Naming/AccessorMethodName -- Sidekiq's name
        Sidekiq.default_job_options.merge(own_sidekiq_options)
      end

      # @private
      def own_sidekiq_options
        @sidekiq_options || (superclass.respond_to?(:own_sidekiq_options) ? superclass.own_sidekiq_options : {})
      end

      # Sets the time until the next attempt. The block returns seconds, `:default` or nil for the
      # default, `:kill`, or `:discard`.
      # @yieldparam count [Integer] how often the job had failed before
      # @yieldparam error [Exception]
      # @yieldparam job [Hash]
      def sidekiq_retry_in(&block)
        @sidekiq_retry_in = block
      end

      # Sets what is called when a job was given up.
      # @yieldparam job [Hash]
      # @yieldparam error [Exception]
      def sidekiq_retries_exhausted(&block)
        @sidekiq_retries_exhausted = block
      end

      # @private
      def sidekiq_retry_in_block
        @sidekiq_retry_in || (superclass.sidekiq_retry_in_block if superclass.respond_to?(:sidekiq_retry_in_block))
      end

      # @private
      def sidekiq_retries_exhausted_block
        inherited = superclass.respond_to?(:sidekiq_retries_exhausted_block)
        @sidekiq_retries_exhausted || (superclass.sidekiq_retries_exhausted_block if inherited)
      end

      # Sets the queue of all jobs of this class.
      def queue_as(name)
        sidekiq_options('queue' => name.to_s)
      end

      # Returns the class with options for some jobs.
      # @return [Setter]
      def set(options)
        Setter.new(self, options)
      end

      # Enqueues a job.
      # @return [String, nil] the jid
      # @raise (see Millrace::Client#enqueue)
      def perform_async(*args)
        set({}).perform_async(*args)
      end

      # Enqueues a job that is due after some time, or at a time.
      # @param interval [Numeric, Time] seconds from now; from 1e9 on, seconds since the epoch
      # @return (see #perform_async)
      # @raise (see #perform_async)
      def perform_in(interval, *args)
        set({}).perform_in(interval, *args)
      end
      alias perform_at perform_in

      # Enqueues a job for each array of arguments.
      # @return [Array<String, nil>] the jids
      # @raise (see Millrace::Client#enqueue_bulk)
      def perform_bulk(all, **options)
        set({}).perform_bulk(all, **options)
      end

      # Runs a job immediately, through all middleware.
      # @return [true, nil] nil if middleware stopped the job
      def perform_inline(*args)
        set({}).perform_inline(*args)
      end
      alias perform_sync perform_inline

      # Enqueues a job that is a hash.
      # @private
      def client_push(item)
        Client.new.push(item)
      end
    end

    # A job class with options for the jobs to enqueue.
    class Setter
      # @private
      def initialize(job_class, options)
        @job_class = job_class
        @options = {}
        set(options)
      end

      # Adds options: those of {ClassMethods#sidekiq_options}, and `wait`, `wait_until` and `sync`.
      # @return [Setter]
      def set(options)
        options = options.transform_keys(&:to_s)
        due = options.delete('wait_until') || options.delete('wait')
        @options['at'] = Setter.time(due) if due
        @options.merge!(options)
        self
      end

      # (see ClassMethods#perform_async)
      def perform_async(*args)
        return perform_inline(*args) if @options['sync']

        @job_class.client_push(item(args))
      end

      # (see ClassMethods#perform_in)
      def perform_in(interval, *args)
        at = Setter.time(interval)
        @job_class.client_push(at ? item(args).merge('at' => at) : item(args))
      end
      alias perform_at perform_in

      # (see ClassMethods#perform_bulk)
      def perform_bulk(all, **options)
        at = options[:at]
        Client.new.push_bulk(item(all).merge({ 'at' => at }.compact))
      end

      # (see ClassMethods#perform_inline)
      def perform_inline(*args)
        payload = Client.new.through(item(args)) or return

        Client.new_job(payload).prepare(Time.now.to_f) # checks the job
        Running.run(@job_class, Sidekiq.load_json(Sidekiq.dump_json(payload)))
        true
      end
      alias perform_sync perform_inline

      # Returns when a job is due, or nil if that is now.
      # @private
      def self.time(interval)
        seconds = interval.to_f
        now = Time.now.to_f
        at = seconds < 1_000_000_000 ? now + seconds : seconds
        at if at > now
      end

      private

      def item(args)
        @options.except('sync').merge('class' => @job_class, 'args' => args)
      end
    end
  end

  # Raised in jobs by Sidekiq when a worker stops. Here nothing raises it: {Job#interrupted?} says so.
  class Shutdown < Interrupt; end

  # The older name of {Job}.
  Worker = Job
end
