# frozen_string_literal: true

# Sidekiq's module, as this layer has it.
module Sidekiq
  # Runs jobs of Sidekiq's classes in a {Millrace::Worker}.
  # @private
  module Running
    module_function

    # Returns how a worker runs the jobs of a class, or nil if it is none of Sidekiq's.
    def entry(job_class)
      return unless job_class.is_a?(Class) && job_class.include?(Job)

      retry_in = job_class.sidekiq_retry_in_block
      Millrace::Entry.new(->(job) { run(job_class, members(job), job) },
                          retry_in && ->(count, error, job) { seconds(retry_in.call(count, error, members(job, error))) },
                          job_class.get_sidekiq_options['timeout'], job_class.instance_method(:perform).source_location)
    end

    # Runs a job through middleware, and returns the result of `perform`. `job` is nil outside a
    # worker.
    def run(job_class, item, job = nil, middleware = Sidekiq.config.server_middleware)
      one = job_class.new
      one.jid = item['jid']
      one.millrace_job = job
      result = nil
      args = item['args']
      middleware.invoke(one, item, item['queue']) do
        result = args.is_a?(Array) ? one.perform(*args) : one.perform(args)
      end
      result
    end

    # Returns a job as the hash that Sidekiq's functions get. It is a new one each time, so a job that
    # changes its arguments changes nothing else.
    def members(job, error = nil)
      found = Sidekiq.load_json(Sidekiq.dump_json(job.members))
      found = found.merge('jid' => job.jid, 'class' => job.job_class, 'args' => found.fetch('args', []), 'queue' => job.queue)
      found['created_at'] ||= found['enqueued_at']
      return found unless error

      found.merge('error_class' => error.class.name, 'error_message' => error.message)
    end

    # Adds what the program has set to the worker of `millrace-worker`.
    def configure(worker)
      worker.on(:failure) { |job, error| failed(job, error) }
      worker.on(:death) { |job, error| died(job, error) }
    end

    def failed(job, error)
      context = { context: 'Job raised exception', job: members(job) }
      each(Sidekiq.config.error_handlers) { |handler| handler.call(error, context, Sidekiq.config) }
    end

    def died(job, error)
      item = members(job, error)
      job_class = Millrace::Handler.load_constant(job.job_class)
      exhausted = job_class.sidekiq_retries_exhausted_block if job_class.respond_to?(:sidekiq_retries_exhausted_block)
      exhausted = nil if item['retry'] == false # as in Sidekiq: it had no retries
      each([exhausted, *Sidekiq.config.death_handlers].compact) { |handler| handler.call(item, error) }
    end

    # Calls functions of the program. One that fails does not stop the others.
    def each(functions)
      functions.each do |function|
        yield function
      rescue StandardError => e
        Sidekiq.logger.error("millrace/sidekiq: a handler of failures failed: #{e.class}: #{e.message} #{e.backtrace&.first(3)}")
      end
    end

    # Returns the answer of a class's function as Millrace has it.
    def seconds(answer)
      answer == :default ? nil : answer
    end
  end

  Millrace::Handler.framework { |constant| Running.entry(constant) }
  Millrace.configure_worker { |worker| Running.configure(worker) }
end
