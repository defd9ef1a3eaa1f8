# frozen_string_literal: true

# The application after the change to Millrace: its worker runs the letters.
require_relative 'letter'
require 'active_job/queue_adapters/millrace_adapter'

ActiveJob::Base.queue_adapter = :millrace
