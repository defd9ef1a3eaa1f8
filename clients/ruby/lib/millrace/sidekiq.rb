# frozen_string_literal: true

require 'millrace'

if defined?(Sidekiq::VERSION)
  raise LoadError, 'the gem sidekiq is loaded, and millrace/sidekiq defines the same classes: remove gem "sidekiq" from the Gemfile'
end

require_relative 'sidekiq/middleware'
require_relative 'sidekiq/config'
require_relative 'sidekiq/client'
require_relative 'sidekiq/running'
require_relative 'sidekiq/job'

# Runs job classes that were written for Sidekiq on Millrace. Require `millrace/sidekiq` where the
# program required `sidekiq`, and `millrace/sidekiq/testing` in its tests. There is no Redis.
#
# What this layer has is a part of Sidekiq 8: job classes with their options and hooks,
# {Client}, middleware, {configure_server} and the testing modes. The README says what is missing.
module Sidekiq
  # Raised for a part of Sidekiq that Millrace does not have.
  class Unsupported < StandardError; end

  # What to use in place of a constant of Sidekiq.
  INSTEAD = {
    Queue: 'Millrace::Inspector#queue', Stats: 'Millrace::Inspector#queues', RetrySet: 'Millrace::Inspector',
    ScheduledSet: 'Millrace::Inspector', DeadSet: 'Millrace::Inspector', ProcessSet: "Millrace's REST API",
    Workers: "Millrace's REST API", WorkSet: "Millrace's REST API", Web: "Millrace's web UI", CLI: 'the command millrace-worker',
    Logger: 'Millrace.logger=', Batch: nil, Limiter: nil, IterableJob: nil, CurrentAttributes: nil, Cron: nil, Periodic: nil
  }.freeze
  private_constant :INSTEAD

  @default_job_options = { 'retry' => true, 'queue' => 'default' }.freeze
  @config = Config.new

  class << self
    # @return [Hash{String => Object}] the options of all jobs whose class and `set` say nothing else
    attr_reader :default_job_options

    # @return [Config] the settings of the client, and in the command `millrace-worker` of the worker
    attr_reader :config
    alias default_configuration config

    # Replaces some of the options of all jobs.
    def default_job_options=(options)
      @default_job_options = @default_job_options.merge(options.transform_keys(&:to_s)).freeze
    end

    # @return [Boolean] whether this process is the command `millrace-worker`
    def server?
      defined?(Millrace::Command) ? Millrace::Command.running? : false
    end

    # Calls the block in the command `millrace-worker`.
    # @yieldparam config [Config]
    def configure_server
      yield config if server?
    end

    # Calls the block in every other program.
    # @yieldparam config [Config]
    def configure_client
      yield config unless server?
    end

    # @return [Logger] the log of Millrace's workers
    def logger
      Millrace.logger
    end

    # Arguments are always checked: there is no other mode.
    def strict_args!(mode = :raise)
      raise Unsupported, 'Millrace always refuses arguments that JSON does not have' unless mode == :raise
    end

    # @raise [Unsupported] always
    def redis
      raise Unsupported, 'there is no Redis: Millrace keeps jobs on the broker'
    end

    # @return [false]
    def pro?
      false
    end
    alias ent? pro?

    # @return [String]
    def dump_json(value)
      JSON.generate(value)
    end

    # @return [Object]
    def load_json(text)
      JSON.parse(text)
    end

    # Says what to use in place of a part of Sidekiq that is not here.
    def const_missing(name)
      return super unless INSTEAD.key?(name)

      instead = INSTEAD[name]
      raise NameError.new("millrace/sidekiq has no Sidekiq::#{name}#{": use #{instead}" if instead}", name, receiver: self)
    end
  end
end
