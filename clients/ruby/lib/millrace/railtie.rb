# frozen_string_literal: true

require 'rails/railtie'

module Millrace
  # Integrates Millrace into a Rails application. `config.millrace` has these settings, for
  # `config/application.rb` or an environment of it:
  #
  # - `url`: the broker's URL, or those of a cluster; by default that of MILLRACE_AMQP_URL
  # - `client`: options of {Millrace.client}, such as `{ timeout: 2, fail_fast: true }`
  # - `worker`: options of the worker of `millrace-worker`: see {Millrace.worker_options=}
  # - `logger`: the log of workers; by default `Rails.logger`
  #
  # In the command `millrace-worker`, each job runs in the application's reloader, and so in its
  # executor. It runs the latest code in development, and leaves no database connections behind. All
  # classes are loaded, so that jobs are found whose name is not that of their class.
  class Railtie < ::Rails::Railtie
    config.millrace = ActiveSupport::OrderedOptions.new

    # This runs before the application's own initializers, so that they can change these settings.
    initializer 'millrace.settings', after: :initialize_logger, before: :load_config_initializers do |app|
      settings = app.config.millrace
      Millrace.logger = settings.key?(:logger) ? settings.logger : ::Rails.logger
      Millrace.url = settings.url
      Millrace.client = Client.new(Millrace.url, **settings.client) if settings.client
      Millrace.worker_options = settings.worker if settings.worker
    end

    initializer 'millrace.worker', before: :load_config_initializers do |app|
      Millrace.configure_worker do |worker|
        app.reloader.to_prepare { app.eager_load! } # after each reload
        app.eager_load!
        worker.use { |_job, next_one| Railtie.wrap(app.reloader, next_one) }
      end
    end

    # Runs a job. A handler's {Verdict} is not an error of the application. From Rails 7.1 the
    # executor reports every error that it sees, so a verdict must not pass through it.
    # @private
    def self.wrap(reloader, next_one)
      said = nil
      reloader.wrap do
        next_one.call
      rescue Verdict, HandBack => e
        said = e
      end
      raise said if said
    end
  end
end
