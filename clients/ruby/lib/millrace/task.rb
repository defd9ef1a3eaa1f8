# frozen_string_literal: true

module Millrace
  # One delivery on its way through the worker, in a thread of its lane.
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

    # Takes the delivery from its beginning to its outcome.
    def work
      @begun = Wire.now
      @worker.settler.begin(self)
      finish(*examine)
    rescue Exception => e # rubocop:disable Lint/RescueException -- a fault of ours: handed back, the job would come again for ever
      @worker.log.error("a job could not be run, it is rejected: #{Record.error_class(e)}: #{Record.message(e)} #{e.backtrace&.first(3)}")
      finish(nil, Outcome::UNDECODABLE)
    ensure
      ended_its_thread unless @finished
    end

    # The seconds that it ran.
    def took(ended)
      [ended - @begun, 0].max
    end

    # Sets the cancel signal.
    def end(why)
      @job&.tell(ending: why)
    end

    private

    def finish(job, outcome)
      return if @finished

      @finished = true
      @worker.settler.finish(self, job, outcome, Wire.now)
    end

    def examine
      job = decode or return [nil, Outcome::UNDECODABLE]
      deaths = deaths_of(job) or return [job, Outcome::HANDED_BACK]
      @begun = Wire.now
      return [job, Outcome::Judge.poisoned(job, deaths, @begun)] if @worker.max_deaths.positive? && deaths >= @worker.max_deaths
      return [job, Outcome::Judge.expired(job, @begun)] if job.expired?(@begun)

      handler = @worker.handler(job.job_class)
      return [job, Outcome::Judge.failed(job, UnknownClass.new(job.job_class), @begun)] unless handler

      [job, call(job, handler)]
    end

    def decode
      properties = arrival.properties
      id = properties[:message_id]
      Job.new(arrival.body, queue, headers: headers(properties[:headers]), message_id: id && Wire.valid(id),
                                   sent: properties[:timestamp] && Wire.clock(properties[:timestamp].to_f))
    rescue ArgumentError => e
      @worker.log.error("a message in #{queue} is no job, it is rejected: #{e.message}")
      nil
    end

    # The headers as text, where they are text.
    def headers(found)
      return {} if found.nil? || found.empty?

      found.to_h { |name, value| [text(name), value.is_a?(String) ? text(value) : value] }
    end

    def text(bytes)
      found = bytes.dup.force_encoding(Encoding::UTF_8)
      found.valid_encoding? ? found : bytes
    end

    # In how many processes that died the job had begun; nil: it must not begin.
    def deaths_of(job)
      return 0 unless arrival.redelivered && @worker.max_deaths.positive?

      @suspect = true
      attachment.session.ledger.begin(self, job)
    end

    def call(job, handler)
      limit = job.timeout || handler.timeout
      @since = @begun
      @job = job
      job.tell(stopping: @worker.stopping?) # after the job can be seen: whoever stops sets the flag first, and then tells
      @handler = handler
      limited(limit) { handler.run(job) }
      Outcome::SUCCEEDED
    rescue Exception => e # rubocop:disable Lint/RescueException -- also what is no StandardError: one job does not end the process
      judge(e, limit)
    end

    def limited(limit, &block)
      limit ? @worker.timers.limit(self, limit, &block) : block.call
    end

    def judge(error, limit = nil)
      if job.ending == :timeout && !(error.is_a?(Discard) || error.is_a?(Kill))
        late = Timeout.new(limit)
        late.set_backtrace(error.backtrace || [])
        error = late
      end
      Outcome::Judge.failed(job, error, Wire.now, stopping: @worker.stopping?, ending: job.ending, retry_in: @handler.retry_in)
    end

    def ended_its_thread
      return finish(nil, Outcome::HANDED_BACK) unless job

      error = Outcome::Said.new('ThreadEnded', 'the handler ended its thread')
      error.set_backtrace([(@handler.place || ['?']).join(':')]) # nobody knows where in it
      finish(job, judge(error, job.timeout || @handler.timeout))
    end
  end
end
