# frozen_string_literal: true

# Tested by clients/conformance, whose README says what this program must do.

require 'json'
require 'millrace'

EFFECTS = File.open(ENV.fetch('MILLRACE_EFFECTS'), File::WRONLY | File::APPEND | File::CREAT)

def write(what, text, jid, attempt)
  EFFECTS.syswrite("#{what}\t#{text}\t#{jid}\t#{attempt}\t#{format('%.6f', Time.now.to_f)}\n")
end

def add(what, job, text = job.args.first)
  write(what, text, job.jid, job.attempt)
end

settings = JSON.parse(ENV.fetch('MILLRACE_WORKER')).transform_keys(&:to_sym)
settings[:lanes] = (settings[:lanes] || []).map do |lane|
  Millrace::Lane.new(lane['name'], lane['queues'], concurrency: lane['concurrency'])
end
worker = Millrace::Worker.new(ENV.fetch('MILLRACE_AMQP_URL'), **settings)

%w[outer inner].each do |name| # middleware that records its position
  worker.use do |job, next_one|
    next next_one.call if job.job_class != 'Wrapped'

    add(name, job)
    raise 'failed on purpose: fail' if name == 'inner' && job.args.first == 'fail'

    next_one.call
    add("#{name}-end", job)
  end
end

worker.handle('Append') { |job| add('ran', job) }
worker.handle('Wrapped') { |job| add('ran', job) }
worker.handle('Fail') do |job|
  add('ran', job)
  raise "failed on purpose: #{job.args.first}"
end
worker.handle('FailSoon', retry_in: ->(*) { 0.2 }) do |job|
  add('ran', job)
  raise "failed on purpose: #{job.args.first}" if job.attempt <= job.args[1]
end
worker.handle('Fatal') do |job|
  add('ran', job)
  Thread.exit # without an exception to rescue
end
worker.handle('Discard') do |job|
  add('ran', job)
  raise Millrace::Discard, 'on purpose'
end
worker.handle('Kill') do |job|
  add('ran', job)
  raise Millrace::Kill, "killed on purpose: #{job.args.first}"
end
worker.handle('Sleep') do |job|
  add('began', job)
  sleep job.args[1]
  add('ran', job)
end
worker.handle('Wait') do |job|
  add('began', job)
  if job.wait(job.args[1])
    add('stopped', job)
    raise Millrace::HandBack
  end
  add('ran', job)
end
worker.handle('Die') do |job|
  add('began', job)
  Process.kill('KILL', Process.pid)
  sleep
end
worker.handle('Args') { |job| add('args', job, JSON.generate(job.args.drop(1))) }
worker.handle('Trace') { |job| add('trace', job, job.traceparent || 'none') }
worker.handle('Noop') { |_job| nil }

%i[startup quiet shutdown].each { |event| worker.on(event) { write(event, '-', '', 0) } }
worker.on(:death) { |job, _error| add('death', job, '-') }
# Shows where the program hangs.
trap('QUIT') { Thread.list.each { |thread| warn(thread.inspect, *thread.backtrace.first(6)) } }
worker.run(signals: true)
