# frozen_string_literal: true

module Millrace
  # Processes one delivery, in a thread of its lane.
  # @private
  class Task
    attr_reader :attachment, :queue, :arrival, :job, :since
    attr_accessor :claimed, :settling, :suspect

    def initialize(worker, attachment, queue, arrival)
      @worker = worker
      @attachment = attachment
      @queue = queue
      @arrival = arrival
    end

    # Processes the delivery up to its outcome.
    def work
      @begun = Wire.now
      @worker.settler.begin(self)
      conclude(*examine)
    rescue Exception => e # rubocop:disable Lint/RescueException -- a fault of ours: handed back, the job would come again for ever
      next_step = @finished ? '' : ', it is rejected'
      @worker.log.error("a job could not be run#{next_step}: #{Record.error_class(e)}: #{Record.message(e)} #{e.backtrace&.first(3)}")
      finish(nil, Outcome::UNDECODABLE)
    ensure
      conclude(*ended_its_thread) unless @finished
    end

    # Returns how many seconds the job ran.
    def took(ended)
      [ended - @begun, 0].max
    end

    # Sets the cancel signal.
    def end(why)
      @attempt&.end(why)
    end

    # Returns the headers of the delivery, with their values as UTF-8 text where possible.
    def headers
      @headers ||= (arrival.properties[:headers] || {}).to_h { |name, value| [text(name), value.is_a?(String) ? text(value) : value] }
    end

    # Returns the slot that the job holds, or nil if limits do not count it.
    def slot
      headers['millrace-slot'].then { |found| found if found.is_a?(String) }
    end

    # Waits for some seconds. Returns whether the job may still begin.
    def pause(seconds)
      !@worker.bell.wait(seconds) { @worker.stopping? || attachment.lost? }
    end

    private

    # Reports the outcome, and then settles it, also if a failure hook ends the thread.
    def conclude(job, outcome)
      @ended = Wire.now
      report(job, outcome)
    ensure
      finish(job, outcome)
    end

    def finish(job, outcome)
      return if @finished

      @finished = true
      @worker.settler.finish(self, job, outcome, @ended || Wire.now)
    end

    def examine
      job = decode or return [nil, Outcome::UNDECODABLE]
      refusal = refusal_of_claim and return [job, refusal]
      deaths = deaths_of(job) or return [nil, Outcome::HANDED_BACK]
      @begun = Wire.now
      return [job, Outcome::Judge.poisoned(job, deaths, @begun)] if @worker.max_deaths.positive? && deaths >= @worker.max_deaths
      return [job, Outcome::Judge.expired(job, @begun)] if job.expired?(@begun)

      [job, run(job)]
    end

    def run(job)
      @attempt = Attempt.new(@worker, job)
      @since = @begun
      @job = job
      # After @job is set: a stop sets the worker's flag first, and then looks for jobs.
      job.signal(stopping: @worker.stopping?)
      @attempt.run
    end

    # Logs an attempt that did not end well, and calls the failure hooks. Called in the thread of
    # the job, before anything is published.
    def report(job, outcome)
      return if job.nil? || outcome.equal?(Outcome::SUCCEEDED)

      Report.outcome(@worker.log, job, outcome, lost: @worker.settler.lost?(self))
      @worker.hooks.call_here(:failure, job, outcome.failure) if outcome.failure
    end

    def decode
      properties = arrival.properties
      id = properties[:message_id]
      Job.new(arrival.body, queue, headers: headers, message_id: id && Wire.valid(id),
                                   sent: properties[:timestamp] && Wire.clock(properties[:timestamp].to_f))
    rescue ArgumentError => e
      @worker.log.error("a message in #{queue} is no job, it is rejected: #{e.message}")
      nil
    end

    def text(bytes)
      found = bytes.dup.force_encoding(Encoding::UTF_8)
      found.valid_encoding? ? found : bytes
    end

    # Claims a job that may have begun before. Returns its outcome if it must not run.
    def refusal_of_claim
      claims = attachment.session.claims
      return unless claims.needed?(self)

      case claims.claim(self)
      when 'drop' then Outcome::DROPPED
      when nil then Outcome::HANDED_BACK
      end
    end

    # Returns in how many processes that died the job had begun. Returns nil if the job must not
    # begin.
    def deaths_of(job)
      return 0 unless arrival.redelivered && @worker.max_deaths.positive?

      @suspect = true
      attachment.session.ledger.begin(self, job)
    end

    # Returns the job and the outcome if the thread ends before there is one.
    def ended_its_thread
      job ? [job, @attempt.ended_its_thread] : [nil, Outcome::HANDED_BACK]
    end
  end
end
