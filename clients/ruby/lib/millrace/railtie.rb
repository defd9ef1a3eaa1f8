# frozen_string_literal: true

require 'rails/railtie'

module Millrace
  # Fits Millrace into a Rails application. `config.millrace` has these settings, for `config/application.rb` or an environment of it:
  #
  # - `url`: the broker's URL, or those of a cluster; else that of MILLRACE_AMQP_URL
  # - `client`: options of {Millrace.client}, such as `{ timeout: 2, fail_fast: true }`
  # - `logger`: where workers log; `Rails.logger` if it is not set
  #
  # In the command `millrace-worker` each job runs in the application's reloader, and so in its executor: with the latest code in
  # development, and without database connections left over. All classes are loaded, so that jobs are also found that are not called
  # like their class.
  class Railtie < ::Rails::Railtie
    config.millrace = ActiveSupport::OrderedOptions.new

    # Before the application's own initializers, which may change what is set here.
    initializer 'millrace.settings', after: :initialize_logger, before: :load_config_initializers do |app|
      settings = app.config.millrace
      Millrace.logger = settings.key?(:logger) ? settings.logger : ::Rails.logger
      Millrace.url = settings.url
      Millrace.client = Client.new(Millrace.url, **settings.client) if settings.client
    end

    initializer 'millrace.worker', before: :load_config_initializers do |app|
      Millrace.configure_worker do |worker|
        app.reloader.to_prepare { app.eager_load! } # after each reload
        app.eager_load!
        worker.use { |_job, next_one| Railtie.wrap(app.reloader, next_one) }
      end
    end

    # Runs a job. What a handler raises to say what becomes of its job is no error of the application: the executor does not see it,
    # since from Rails 7.1 on it reports what it sees.
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
