# frozen_string_literal: true

require 'active_job'
require 'millrace'

# Rails' own module. Millrace adds a class to it.
module ActiveJob
  # ActiveJob looks up adapters in this module, by name.
  module QueueAdapters
    # Runs ActiveJob's jobs with Millrace: `config.active_job.queue_adapter = :millrace`.
    #
    # {Millrace.client} enqueues the jobs, and a {Millrace::Worker} runs them. A job has the class,
    # the queue and the priority (0 to 10) of its ActiveJob. Its only argument is the serialized
    # ActiveJob. The class method `millrace_options` returns options for all jobs of a class.
    #
    # @example
    #   class Welcome < ActiveJob::Base
    #     queue_as 'mail'
    #
    #     def self.millrace_options
    #       { retry: 5, timeout: 30 }
    #     end
    #
    #     def perform(name) = puts("Welcome #{name}")
    #   end
    #
    #   Welcome.perform_later('Ann')
    #   Welcome.set(wait: 1.hour, priority: 9).perform_later('Bob')
    class MillraceAdapter
      # Only Rails 7.2 calls this. Later versions ask the job's class.
      # @return [Boolean] that a job is enqueued after the transaction has committed: a worker may
      #   run it immediately
      def enqueue_after_transaction_commit?
        true
      end

      # Returns the job that a worker runs in this thread. A job that runs for long asks it whether
      # to end, because nothing ends the job from outside: `queue_adapter.job&.cancelled?`.
      # @return [Millrace::Job, nil]
      def job
        Thread.current[:millrace_active_job]
      end

      # @return [Boolean] whether the worker that runs this thread's job is stopping
      def stopping?
        job&.stopping? || false
      end

      # Publishes a job. When this returns, the broker has confirmed the job.
      # @param job [ActiveJob::Base]
      # @raise (see Millrace::Client#enqueue)
      def enqueue(job)
        enqueue_at(job, nil)
      end

      # Publishes a job that is due at a given time.
      # @param job [ActiveJob::Base]
      # @param timestamp [Numeric, nil] seconds since the epoch; nil: now
      # @raise (see Millrace::Client#enqueue)
      def enqueue_at(job, timestamp)
        job.provider_job_id = Millrace.client.push(new_job(job, timestamp))
      rescue Millrace::Unconfirmed => e
        job.provider_job_id = e.jid
        raise
      end

      # Publishes many jobs. `ActiveJob.perform_all_later` calls this.
      # @param jobs [Array<ActiveJob::Base>]
      # @return [Integer] how many were enqueued
      # @raise [Millrace::BulkError] if some were not; `successfully_enqueued?` of each job says
      #   which
      def enqueue_all(jobs)
        enqueued(jobs, Millrace.client.enqueue_bulk(jobs.map { |job| new_job(job, job.scheduled_at) }))
      rescue Millrace::BulkError => e
        enqueued(jobs, e.jids)
        e.errors.each { |index, error| jobs[index].provider_job_id = error.jid if error.is_a?(Millrace::Unconfirmed) }
        raise
      end

      # Returns how a worker runs the jobs of a class.
      # @private
      def self.entry(job_class)
        return unless job_class.is_a?(Class) && job_class < ActiveJob::Base

        run = lambda do |job|
          Thread.current[:millrace_active_job] = job
          ActiveJob::Base.execute(job.args.first.merge('provider_job_id' => job.jid))
        ensure
          Thread.current[:millrace_active_job] = nil
        end
        place = job_class.instance_method(:perform).source_location
        Millrace::Entry.new(run, nil, Millrace::Handler.options_of(job_class)[:timeout], place)
      end

      private

      def new_job(job, due)
        options = { queue: job.queue_name, priority: job.priority }.compact
        Millrace::NewJob.new(job.class, [job.serialize], at: due, **options)
      end

      def enqueued(jobs, jids)
        jobs.zip(jids) do |job, jid|
          job.provider_job_id = jid
          job.successfully_enqueued = !jid.nil? if job.respond_to?(:successfully_enqueued=)
        end
        jids.compact.size
      end
    end

    Millrace::Handler.framework { |constant| MillraceAdapter.entry(constant) }
  end
end
