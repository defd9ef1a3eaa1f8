# frozen_string_literal: true

module Sidekiq
  # The settings that {Sidekiq.configure_server} and {Sidekiq.configure_client} change. In the
  # command `millrace-worker` they become those of its worker. Options of the command line win.
  class Config
    # A named group of threads with queues of their own. It becomes a {Millrace::Lane}.
    class Capsule
      # @return [Integer] the number of threads
      attr_accessor :concurrency
      # @return [String]
      attr_reader :name
      # @return [Array<String>] `name` or `name,weight`
      attr_accessor :queues

      # @private
      def initialize(name)
        @name = name
        @queues = ['default']
        @concurrency = Millrace::Lane::CONCURRENCY
      end

      # @private
      def lane
        Millrace::Lane.new(name, Config.queues(queues), concurrency: concurrency)
      end
    end

    # @return [Array<#call>] called with a job and the error for which it was given up
    attr_reader :death_handlers
    # @return [Array<#call>] called with the error of a failed attempt, a hash with the job, and
    #   these settings
    attr_reader :error_handlers

    # @private
    def initialize
      @options = {}
      @capsules = {}
      @death_handlers = []
      @error_handlers = []
      @client = Middleware::Chain.new
      @server = Middleware::Chain.new
    end

    # Sets how many jobs run concurrently.
    def concurrency=(number)
      set(concurrency: Integer(number))
    end

    # Sets the queues: `name` or `name,weight`.
    def queues=(names)
      set(queues: Config.queues(names))
    end

    # There is no Redis, so this setting has no effect.
    def redis=(_settings)
      logger.info('the Redis of this program is not used: Millrace keeps jobs on the broker')
    end

    # Makes a group of threads with queues of its own, beside those of {#queues=}, or changes it.
    # @yieldparam capsule [Capsule]
    def capsule(name)
      capsule = @capsules[name.to_s] ||= Capsule.new(name.to_s)
      yield capsule if block_given?
      set(queues: ['default']) unless Millrace.worker_options[:queues]
      set(lanes: @capsules.values.map(&:lane))
      capsule
    end

    # Adds a hook.
    # @param event [Symbol] `:startup`, `:quiet` or `:shutdown`
    def on(event, &block)
      Millrace.configure_worker { |worker| worker.on(event, &block) }
    end

    # @yieldparam chain [Middleware::Chain]
    # @return [Middleware::Chain] what is called for each job that is enqueued
    def client_middleware
      yield @client if block_given?
      @client
    end

    # @yieldparam chain [Middleware::Chain]
    # @return [Middleware::Chain] what is called for each job that runs
    def server_middleware
      yield @server if block_given?
      @server
    end

    # @return [Logger]
    def logger
      Millrace.logger
    end

    # Replaces the log of workers.
    def logger=(logger)
      Millrace.logger = logger
    end

    # Returns queues in the form that a {Millrace::Worker} takes.
    # @private
    def self.queues(names)
      weights = Array(names).to_h { |name| [name.to_s[/[^,]+/], name.to_s[/,(.+)/, 1]] }
      return weights.keys if weights.values.none?

      weights.transform_values { |weight| Integer(weight || 1) }
    end

    private

    def set(**options)
      Millrace.worker_options = Millrace.worker_options.merge(options)
    end
  end
end
