# frozen_string_literal: true

require 'i18n'
require 'millrace/sidekiq'

# Sidekiq's module, with the middleware for locales.
module Sidekiq
  # Middleware that Sidekiq has, too.
  module Middleware
    # Runs each job in the locale in which it was enqueued. Require `millrace/sidekiq/i18n` where the
    # program required `sidekiq/middleware/i18n`.
    module I18n
      # Adds the locale to a job.
      class Client
        include ClientMiddleware

        # @private
        def call(_job_class, item, _queue, _pool)
          item['locale'] ||= ::I18n.locale
          yield
        end
      end

      # Sets the locale of a job.
      class Server
        include ServerMiddleware

        # @private
        def call(_job, item, _queue, &block)
          ::I18n.with_locale(item.fetch('locale', ::I18n.default_locale), &block)
        end
      end
    end
  end

  config.client_middleware.add(Middleware::I18n::Client)
  configure_server { |config| config.server_middleware.add(Middleware::I18n::Server) }
end
