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
require_relative 'millrace/new_job'
require_relative 'millrace/line'
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

# Background jobs through RabbitMQ or LavinMQ with a Millrace sidecar beside it.
#
# A producer is a {Client}, a {Worker} runs jobs by their class; a class whose `perform` runs jobs includes {Handler}. An {Inspector}
# finds jobs, deletes, retries and reschedules them. `millrace/testing` has producers without a broker. `docs/clients.md` of the project
# has the rules that this library and those of other languages follow.
module Millrace
  @mutex = Mutex.new
  @worker_blocks = []

  class << self
    # @return [Logger] where workers log; the default writes to standard error, from INFO on
    attr_reader :logger

    # Replaces the logger. A logger has the methods `info`, `warn` and `error`; nil silences all.
    # @param logger [Logger, nil]
    def logger=(logger)
      @logger = logger || Logger.new(nil)
    end

    # Sets the client that {enqueue} and {Handler} use; for tests one of {Testing}.
    attr_writer :client

    # The client that {enqueue} and {Handler} use. It is made with the {url}, if nobody has set one.
    # @return [Client]
    def client
      @mutex.synchronize { @client ||= Client.new(url) }
    end

    # Sets the broker's URL, as {Client} takes it; nil: back to the default.
    attr_writer :url

    # The broker of {client}, and of the command `millrace-worker`: that of the environment variable MILLRACE_AMQP_URL, if nobody has set
    # another.
    # @return [String, Array<String>]
    def url
      @url || ENV.fetch('MILLRACE_AMQP_URL', DEFAULT_URL)
    end

    # Adds a block that gets the worker of the command `millrace-worker` before it runs, for hooks, middleware and handlers. The blocks are
    # called in the order in which they were given. A program that makes its own {Worker} has no use for it.
    # @example
    #   Millrace.configure_worker do |worker|
    #     worker.on(:failure) { |job, error| Sentry.capture_exception(error, extra: { jid: job.jid }) }
    #   end
    # @yieldparam worker [Worker]
    # @return [void]
    def configure_worker(&block)
      raise ArgumentError, 'configure_worker needs a block' unless block

      @mutex.synchronize { @worker_blocks << block }
    end

    # Gives a worker to the blocks of {configure_worker}.
    # @private
    def configure(worker)
      @mutex.synchronize { @worker_blocks.dup }.each { |block| block.call(worker) }
    end

    # Adds to Rails and to ActiveJob what they have of Millrace, if they are loaded by now.
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

    # @see Client#enqueue_bulk
    def enqueue_bulk(...)
      client.enqueue_bulk(...)
    end
  end

  self.logger = Logger.new($stderr, level: Logger::INFO, progname: 'millrace')
end

Millrace.join_frameworks
