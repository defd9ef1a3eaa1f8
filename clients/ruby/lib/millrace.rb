# frozen_string_literal: true

require 'logger'

require_relative 'millrace/version'
require_relative 'millrace/errors'
require_relative 'millrace/wire'
require_relative 'millrace/parse'
require_relative 'millrace/bell'
require_relative 'millrace/pauses'
require_relative 'millrace/connection'
require_relative 'millrace/hosts'
require_relative 'millrace/channel'
require_relative 'millrace/publisher'
require_relative 'millrace/unique'
require_relative 'millrace/new_job'
require_relative 'millrace/message'
require_relative 'millrace/periodic_job'
require_relative 'millrace/limit'
require_relative 'millrace/governed_queue'
require_relative 'millrace/line'
require_relative 'millrace/leader'
require_relative 'millrace/client'
require_relative 'millrace/job'
require_relative 'millrace/record'
require_relative 'millrace/backoff'
require_relative 'millrace/report'
require_relative 'millrace/outcome'
require_relative 'millrace/attempt'
require_relative 'millrace/metrics'
require_relative 'millrace/lane'
require_relative 'millrace/hand'
require_relative 'millrace/begins'
require_relative 'millrace/ledger'
require_relative 'millrace/claims'
require_relative 'millrace/control'
require_relative 'millrace/heartbeat'
require_relative 'millrace/hooks'
require_relative 'millrace/timers'
require_relative 'millrace/settler'
require_relative 'millrace/task'
require_relative 'millrace/attachment'
require_relative 'millrace/pool'
require_relative 'millrace/session'
require_relative 'millrace/signals'
require_relative 'millrace/entry'
require_relative 'millrace/worker'
require_relative 'millrace/handler'
require_relative 'millrace/inspector'

# Background jobs through RabbitMQ or LavinMQ, with a Millrace sidecar beside the broker.
#
# - A {Client} enqueues jobs, and defines periodic jobs, limits and governed queues.
# - A {Worker} runs jobs by their class. A class that includes {Handler} runs jobs in its method
#   `perform`.
# - An {Inspector} finds, deletes, retries and reschedules jobs.
# - `millrace/testing` has producers that need no broker.
#
# The rules for this library and those of other languages are in the project's `docs/clients.md`.
module Millrace
  @mutex = Mutex.new
  @worker_blocks = []

  class << self
    # @return [Logger] the log of workers; by default it writes to standard error, from level INFO
    attr_reader :logger

    # Replaces the logger. A logger has the methods `info`, `warn` and `error`. With nil, nothing is
    # logged.
    # @param logger [Logger, nil]
    def logger=(logger)
      @logger = logger || Logger.new(nil)
    end

    # Sets the client that {enqueue} and {Handler} use. Tests set one of {Testing}.
    attr_writer :client

    # Returns the client that {enqueue} and {Handler} use. If none was set, it is made with the
    # {url}.
    # @return [Client]
    def client
      @mutex.synchronize { @client ||= Client.new(url) }
    end

    # Sets the broker's URL, in the form that {Client} takes. Nil restores the default.
    attr_writer :url

    # Returns the URL of the broker that {client} and the command `millrace-worker` use. If none was
    # set, it is that of the environment variable MILLRACE_AMQP_URL.
    # @return [String, Array<String>]
    def url
      @url || ENV.fetch('MILLRACE_AMQP_URL', DEFAULT_URL)
    end

    # Sets options of the worker of the command `millrace-worker`: some of those of {Worker}, such as
    # `lanes` or `credentials`. The options of the command line win.
    # @example
    #   Millrace.worker_options = { lanes: [Millrace::Lane.new('slow', ['reports'])] }
    attr_writer :worker_options

    # @return [Hash{Symbol => Object}] the options of the worker of `millrace-worker`
    def worker_options
      @worker_options || {}
    end

    # Adds a block that gets the worker of the command `millrace-worker` before the worker runs. Use
    # it to add hooks, middleware and handlers. The blocks are called in the order in which they
    # were added. A program that makes its own {Worker} does not need this.
    # @example
    #   Millrace.configure_worker do |worker|
    #     worker.on(:failure) do |job, error|
    #       Sentry.capture_exception(error, extra: { jid: job.jid })
    #     end
    #   end
    # @yieldparam worker [Worker]
    # @return [void]
    def configure_worker(&block)
      raise ArgumentError, 'configure_worker needs a block' unless block

      @mutex.synchronize { @worker_blocks << block }
    end

    # Calls the blocks of {configure_worker} with a worker.
    # @private
    def configure(worker)
      @mutex.synchronize { @worker_blocks.dup }.each { |block| block.call(worker) }
    end

    # Adds Millrace's parts to Rails and to ActiveJob, if these are loaded.
    # @private
    def join_frameworks
      ActiveSupport.on_load(:active_job) { require 'active_job/queue_adapters/millrace_adapter' } if defined?(ActiveSupport.on_load)
      require 'millrace/railtie' if defined?(::Rails::Railtie)
    end

    # @see Client#enqueue
    def enqueue(...)
      client.enqueue(...)
    end

    # @see Client#enqueue_at
    def enqueue_at(...)
      client.enqueue_at(...)
    end

    # @see Client#enqueue_in
    def enqueue_in(...)
      client.enqueue_in(...)
    end

    # @see Client#enqueue_unique
    def enqueue_unique(...)
      client.enqueue_unique(...)
    end

    # @see Client#publish_at
    def publish_at(...)
      client.publish_at(...)
    end

    # @see Client#publish_in
    def publish_in(...)
      client.publish_in(...)
    end

    # @see Client#define
    def define(...)
      client.define(...)
    end

    # @see Client#enqueue_bulk
    def enqueue_bulk(...)
      client.enqueue_bulk(...)
    end
  end

  self.logger = Logger.new($stderr, level: Logger::INFO, progname: 'millrace')
end

Millrace.join_frameworks
