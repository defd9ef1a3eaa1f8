# frozen_string_literal: true

$stdout.sync = true

require 'English'

# Prints what the executor sees of each job.
Rails.application.executor.to_complete { puts "complete #{$ERROR_INFO.class}" }
