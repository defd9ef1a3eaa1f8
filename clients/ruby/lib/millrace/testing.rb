# frozen_string_literal: true

require 'millrace'

module Millrace
  # Producers without a broker, for tests. {Inline} runs a job as soon as it is enqueued; {Fake} collects jobs until they are drained. Both
  # check jobs as a {Client} does, and hand handlers args that went through JSON. What includes {Handler} they run by themselves; give them
  # the worker whose {Worker#handle} and middleware are to count.
  #
  # @example
  #   client = Millrace.client = Millrace::Testing::Fake.new
  #   sign_up('ann@example.com')
  #   assert_equal ['ann@example.com'], client.jobs.first.args
  #   client.drain
  module Testing
    # A job that was enqueued.
    class Enqueued
      # @return [Job]
      attr_reader :job
      # @return [Float, nil] when it is due, in seconds since the epoch; nil: at once
      attr_reader :at

      # @private
      def initialize(job, at)
        @job = job
        @at = at
      end

      # @return [String]
      def job_class
        job.job_class
      end

      # @return [Array] as its handler will get them
      def args
        job.args
      end
    end

    # A publish that needs no answer.
    # @private
    Answered = Struct.new(:jid) do
      alias_method :wait, :jid
    end

    # What both have in common.
    # @private
    class Offline < Client
      def initialize(worker = nil)
        super('amqp://nowhere.invalid')
        @worker = worker || Worker.new('amqp://nowhere.invalid')
      end

      private

      def publish(new_job, _seconds)
        jid, message = new_job.prepare(Wire.now)
        body, at = new_job.at ? unwrap(message.body) : [message.body, nil]
        queue = Parse.json(body.b)['queue']
        enqueued(Enqueued.new(Job.new(body, queue, headers: message.headers, message_id: jid), at))
        Answered.new(jid)
      end

      # The job's bytes in a scheduled job, and when it is due.
      def unwrap(body)
        members = Scan.members(body).to_h { |member| [member.spelled, body.byteslice(member.from...member.to)] }
        [members['job'], JSON.parse(members['scheduled_at'])]
      end

      def work(job)
        handler = @worker.handler(job.job_class) or raise UnknownClass, job.job_class
        handler.run(job)
      end
    end

    # A client that runs a job's handler at once. What the handler raises is the caller's.
    class Inline < Offline
      private

      def enqueued(enqueued)
        work(enqueued.job)
      end
    end

    # A client that collects.
    class Fake < Offline
      # @param worker [Worker, nil] whose handlers run what is drained, beside what includes {Handler}
      def initialize(worker = nil)
        super
        @jobs = []
      end

      # What was enqueued and not drained.
      # @return [Array<Enqueued>]
      def jobs
        @jobs.dup
      end

      # Runs what is there and what that enqueues, scheduled jobs as well. What a handler raises ends it; the job that failed is gone, those
      # behind it stay.
      # @return [Integer] how many that were
      def drain
        count = 0
        while (enqueued = @jobs.shift)
          count += 1
          work(enqueued.job)
        end
        count
      end

      # Forgets what was enqueued.
      def clear
        @jobs.clear
      end

      private

      def enqueued(enqueued)
        @jobs << enqueued
      end
    end
  end
end
