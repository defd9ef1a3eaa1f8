# frozen_string_literal: true

require_relative 'lib/millrace/version'

Gem::Specification.new do |spec|
  spec.name = 'millrace-jobs'
  spec.version = Millrace::VERSION
  spec.summary = 'Background jobs on RabbitMQ and LavinMQ: client and worker of Millrace'
  spec.description = 'Enqueues and runs background jobs, with delays and retries of any length. The broker is RabbitMQ or LavinMQ, ' \
                     'and the Millrace sidecar beside it keeps scheduled jobs, retries and dead jobs.'
  spec.authors = ['The Millrace authors']
  spec.homepage = 'https://github.com/millrace-jobs/millrace'
  spec.license = 'Apache-2.0'
  spec.required_ruby_version = '>= 3.1'
  spec.files = Dir.chdir(__dir__) { Dir['lib/**/*.rb', 'sig/**/*.rbs', 'exe/*', 'examples/*.rb', 'LICENSE', 'README.md', '.yardopts'] }
  spec.bindir = 'exe'
  spec.executables = ['millrace-worker']
  spec.add_runtime_dependency 'bunny', '>= 2.19', '< 4'
  spec.metadata = {
    'bug_tracker_uri' => "#{spec.homepage}/issues",
    'changelog_uri' => "#{spec.homepage}/blob/main/CHANGELOG.md",
    'documentation_uri' => "#{spec.homepage}/blob/main/docs/clients.md",
    'source_code_uri' => "#{spec.homepage}/tree/main/clients/ruby",
    'rubygems_mfa_required' => 'true'
  }
end
