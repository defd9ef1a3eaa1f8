# frozen_string_literal: true

# A job of Active Job, for the workers of both sides. Each run is a line of the file that RUNS names.
require 'active_job'

ActiveJob::Base.logger = Logger.new(IO::NULL)

def ran(jid, side)
  File.open(ENV.fetch('RUNS'), 'a') { |file| file.syswrite("#{jid} #{side}\n") }
end

# Raises in the first attempt of a job.
def fail_first(jid)
  seen = File.join(ENV.fetch('SEEN'), jid)
  return if File.exist?(seen)

  File.write(seen, '')
  raise 'the first attempt fails'
end

# JSON has no date: Active Job writes an object.
class Letter < ActiveJob::Base
  ARGS = [9_007_199_254_740_993, 'é', { on: Date.new(2026, 2, 28) }].freeze

  def perform(*args)
    raise "args changed: #{args.inspect}" unless args == ARGS

    ran(provider_job_id, self.class.queue_adapter_name)
  end
end

# Fails in its first attempt.
class FlakyLetter < Letter
  def perform(*)
    fail_first(provider_job_id)
    super
  end
end
