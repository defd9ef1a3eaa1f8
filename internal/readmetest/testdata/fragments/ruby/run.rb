# frozen_string_literal: true

# Runs the fragments in the Ruby client's README, in an application with Rails and without a broker.
# The arguments are the README, and files whose names are the lines in it.
require 'rails'
require 'active_support/all'
require 'active_job/railtie'
require 'millrace-jobs'
require 'millrace/testing'

ENV['MILLRACE_AMQP_URL'] = 'amqp://127.0.0.1:1'

# The application in whose config/application.rb the settings are.
class Shop < Rails::Application
  config.load_defaults Rails::VERSION::STRING.to_f
  config.eager_load = false
  config.active_job.queue_adapter = :millrace
end

class ApplicationJob < ActiveJob::Base
end

# A mailer without a mail.
class UserMailer
  def self.welcome(_user)
    Struct.new(:deliver_now).new
  end
end

# The handler in greet.rb.
class Greet
  include Millrace::Handler

  def perform(name); end
end

# A model, as far as a callback needs one.
class Customer
  def self.after_create_commit(&block)
    new.instance_exec(&block)
  end

  def name
    'Ann'
  end
end

def url
  ENV.fetch('MILLRACE_AMQP_URL')
end

def user
  'ann@example.com'
end

def fresh
  binding
end

def expect(what, holds)
  raise "what the README says does not work: #{what}" unless holds
end

def initialize_application
  Rails.application.initialize!
  expect('url', Millrace.url == 'amqp://shop@broker.example/jobs')
  expect('client', Millrace.client.is_a?(Millrace::Client))
  expect('worker', Millrace::Worker.new(Millrace.url, **Millrace.worker_options).is_a?(Millrace::Worker) && Millrace.worker_options[:lanes])
  expect('logger', Millrace.logger != Rails.logger)
end

def run(text, readme, line)
  case text
  when /\Aconfig\./
    Shop.class_eval(text, readme, line)
    initialize_application
  when /\Aafter_create_commit/
    Customer.class_eval(text, readme, line)
  else
    eval(text, fresh, readme, line)
  end
end

readme, *files = ARGV
texts = files.to_h { |file| [File.basename(file, '.rb').to_i, File.read(file)] }
texts.sort_by { |line, text| [text.start_with?('config.') ? 0 : 1, line] }.each do |line, text|
  jobs = Millrace.client = Millrace::Testing::Fake.new
  Millrace.client = nil if text.start_with?('config.')
  run(text, readme, line)
  # ActiveJob ignores options that it does not know.
  expect("line #{line} sets no priority", jobs.jobs.any? { |job| job.job.priority.positive? }) if text.include?('.set(')
  expect("line #{line} enqueues nothing", jobs.drain.positive?) if text.match?(/perform_(async|later)\b/)
end
puts "#{texts.size} fragments"
