# frozen_string_literal: true

require 'logger'
require 'minitest/autorun'
require 'millrace'
require 'millrace/testing'
require_relative 'vectors'

Millrace.logger = Logger.new(nil)

# No broker listens there.
NOWHERE = 'amqp://guest:guest@127.0.0.1:1/'

# Helpers of all tests.
module Helper
  include Millrace

  def job(body = '{"class":"A","jid":"j"}', queue = 'q', **more)
    Job.new(body, queue, **more)
  end

  def failed(job, error, now = 1.0, **more)
    Outcome::Judge.failed(job, error, now, **more)
  end

  # Returns an error with a backtrace, as after a raise.
  def raised(error, cause: nil)
    raise error, cause: cause
  rescue error.class => e
    e
  end
end
