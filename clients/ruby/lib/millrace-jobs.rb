# frozen_string_literal: true

# Bundler requires a gem by its name. At that time the command millrace-worker has loaded Millrace,
# but not Rails.
require 'millrace'

Millrace.join_frameworks
