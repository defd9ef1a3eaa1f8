# frozen_string_literal: true

module Millrace
  # Runs a job's handler once, and decides the outcome of the job. Workers and test helpers share
  # it.
  # @private
  class Attempt
    attr_reader :job

    # The error that the handler raised, or nil.
    attr_reader :error

    # `signal` is the signal that is set when the handler begins: :cancelled, :timeout, :stopping or
    # nil.
    def initialize(worker, job, signal = nil)
      @worker = worker
      @job = job
      @signal = signal
    end

    # Returns the outcome.
    def run
      @handler = @worker.handler(@job.job_class) or raise UnknownClass, @job.job_class
      @limit = @job.timeout || @handler.timeout
      signal if @signal
      limited { @handler.run(@job) }
      Outcome::SUCCEEDED
    rescue Exception => e # rubocop:disable Lint/RescueException -- also what is no StandardError: one job does not end the process
      judge(@error = e)
    end

    # Sets the job's cancel signal.
    def end(why)
      @job.signal(why: why)
      Report.late(@worker.log, @job, @limit) if why == :timeout
    end

    # Returns the outcome of a handler that ended its thread. There is no stack, so the backtrace
    # names the handler.
    def ended_its_thread
      error = Outcome::Said.new('ThreadEnded', 'the handler ended its thread')
      error.set_backtrace([@handler ? @handler.where : '?'])
      judge(error)
    end

    private

    def signal
      return @job.signal(stopping: true) if @signal == :stopping
      raise ArgumentError, "#{@job.job_class} has no timeout" if @signal == :timeout && @limit.nil?

      self.end(@signal)
    end

    def limited(&block)
      @limit ? @worker.timers.limit(self, @limit, &block) : block.call
    end

    def judge(error)
      error = late(error) if @job.end == :timeout && !(error.is_a?(Discard) || error.is_a?(Kill))
      own = @handler&.retry_in unless @judged # a function that ended the thread is not called again
      @judged = true
      Outcome::Judge.failed(@job, error, Wire.now, stopping: @worker.stopping? || @job.stopping?, why: @job.end, retry_in: own,
                                                   log: @worker.log)
    end

    def late(error)
      Timeout.new(@limit).tap { |late| late.set_backtrace(error.backtrace || []) }
    end
  end
end
