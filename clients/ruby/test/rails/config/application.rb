# frozen_string_literal: true

require 'rails'
require 'active_job/railtie'
require 'millrace-jobs' # as Bundler does

# The smallest possible Rails application.
class Shop < Rails::Application
  config.root = File.expand_path('..', __dir__)
  config.load_defaults Rails::VERSION::STRING.to_f
  config.eager_load = false # as in development
  config.cache_classes = false
  config.active_job.queue_adapter = :millrace
  config.millrace.url = ENV.fetch('SHOP_BROKER')
  config.millrace.client = { fail_fast: true }
  config.millrace.worker = { labels: { 'app' => 'shop' } }
end
