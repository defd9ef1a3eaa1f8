# frozen_string_literal: true

require 'logger'
require 'minitest/autorun'
require 'millrace'
require 'millrace/testing'
require_relative 'vectors'

Millrace.logger = Logger.new(nil)

# Nobody listens there.
NOWHERE = 'amqp://guest:guest@127.0.0.1:1/'

# What the tests have in common.
module Helper
  include Millrace

  def job(body = '{"class":"A","jid":"j"}', queue = 'q', **more)
    Job.new(body, queue, **more)
  end

  def failed(job, error, now = 1.0, **more)
    Outcome::Judge.failed(job, error, now, **more)
  end

  # An error as it is when it was raised.
  def raised(error, cause: nil)
    raise error, cause: cause
  rescue error.class => e
    e
  end
end
