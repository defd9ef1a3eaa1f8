# frozen_string_literal: true

# Bundler requires a gem by its name. The command millrace-worker has loaded Millrace by then, and not Rails.
require 'millrace'

Millrace.join_frameworks
