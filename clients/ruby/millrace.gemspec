# frozen_string_literal: true

require_relative 'lib/millrace/version'

Gem::Specification.new do |spec|
  spec.name = 'millrace'
  spec.version = Millrace::VERSION
  spec.summary = 'Background jobs through RabbitMQ or LavinMQ with a Millrace sidecar beside it'
  spec.authors = ['The Millrace authors']
  spec.homepage = 'https://github.com/millrace-jobs/millrace'
  spec.license = 'Apache-2.0'
  spec.required_ruby_version = '>= 3.1'
  spec.files = Dir.chdir(__dir__) { Dir['lib/**/*.rb', 'sig/**/*.rbs', 'exe/*', 'examples/*.rb', 'README.md', '.yardopts'] }
  spec.bindir = 'exe'
  spec.executables = ['millrace-worker']
  spec.add_runtime_dependency 'bunny', '>= 2.19', '< 4'
  spec.metadata = { 'source_code_uri' => spec.homepage, 'rubygems_mfa_required' => 'true' }
end
