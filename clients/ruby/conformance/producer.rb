# frozen_string_literal: true

# Tested by clients/conformance, whose README says what this program must do.

require 'json'
require 'millrace'

def bulk(client, command)
  (0...command['count']).each_slice(500).flat_map do |numbers|
    jobs = numbers.map { |n| Millrace::NewJob.new(command['class'], ["#{command['prefix']}#{n}"], queue: command['queue']) }
    client.enqueue_bulk(jobs)
  rescue Millrace::BulkError => e
    warn e.message
    e.jids
  end
end

def options_of(command)
  (command['options'] || {}).transform_keys(&:to_sym).merge(deadline: command['timeout'])
end

def enqueue_unique(client, command)
  stays = client.enqueue_unique(command['class'], command['args'], at: command['at'], **options_of(command))
  { jids: [stays.jid], duplicate: stays.duplicate? }
end

def carry_out(client, command)
  options = options_of(command)
  case command['op']
  when 'bulk' then bulk(client, command)
  when 'enqueue_at' then [client.enqueue_at(command['at'], command['class'], command['args'], **options)]
  when 'enqueue_in' then [client.enqueue_in(command['in'], command['class'], command['args'], **options)]
  else [client.enqueue(command['class'], command['args'], **options)]
  end
end

def define(client, command)
  jobs = command['jobs']&.map do |job|
    Millrace::PeriodicJob.new(job['name'], job['class'], job['args'], **job.except('name', 'class', 'args').transform_keys(&:to_sym))
  end
  limits = command['limits']&.map { |limit| Millrace::Limit.new(limit['name'], **limit.except('name').transform_keys(&:to_sym)) }
  queues = command['queues']&.map { |queue| Millrace::GovernedQueue.new(queue['name'], **queue.except('name').transform_keys(&:to_sym)) }
  did = client.define(command['source'], jobs, limits: limits, queues: queues, deadline: command['timeout'])
  { made: did.made, changed: did.changed, forgotten: did.forgotten, unchanged: did.unchanged }
end

results = File.open(ENV.fetch('MILLRACE_RESULTS'), 'a')
results.sync = true
Millrace::Client.open(ENV.fetch('MILLRACE_AMQP_URL')) do |client|
  %w[outer inner].each do |name| # middleware that records its position
    client.use do |job, next_one|
      job.args += [name] if job.job_class == 'Wrapped'
      next_one.call(job) unless job.job_class == 'Swallowed'
    end
  end
  $stdin.each_line.with_index(1) do |line, number|
    result = begin
      command = JSON.parse(line)
      case command['op']
      when 'define' then define(client, command)
      when 'enqueue_unique' then enqueue_unique(client, command)
      else { jids: carry_out(client, command) }
      end
    rescue Millrace::Error => e
      { error: e.class.name.split('::').last, message: e.message }
    end
    results.write("#{JSON.generate({ line: number, **result })}\n")
  end
end
