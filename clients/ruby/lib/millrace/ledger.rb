# frozen_string_literal: true

require 'set'

module Millrace
  # Reads and writes the stream `jobs.begins`, from which workers find jobs that kill their workers.
  # Without the stream, it lets every job begin.
  # @private
  class Ledger
    # How many seconds a broker takes at most to remove the exclusive queue of a dead process, after
    # it has begun to deliver that process's jobs again.
    AFTERMATH = 0.5
    # How many seconds a process may take to reconnect, before a job is buried because of that
    # process's death.
    GRACE = 10
    # How many seconds a record may take to come back from the stream.
    READ_BACK = 30
    SHORT = 2
    FAILURES = [Connection::Lost, Refused, ::Timeout::Error].freeze

    def initialize(session)
      @session = session
      @worker = session.worker
      @mutex = Mutex.new
      @begins = Begins.new
      @gone = Set.new # exclusive queues that do not exist any more
      @read = {} # how many begins of this process were read back, by key
    end

    # Returns whether the stream can be read and written.
    def usable?
      !@channel.nil? && !@channel.closed?
    end

    # Writes that this process lives, and begins to read. It reads second, because a reader of an
    # empty stream keeps LavinMQ busy.
    def open
      return unless @worker.max_deaths.positive?

      queues = @worker.pools.flat_map { |pool| pool.lane.queues }
      write('opened', READ_BACK, identity: @worker.identity, queue: @session.control, queues: queues)
      @channel = read
    rescue *FAILURES => e
      raise if @session.connection.lost

      @worker.log.warn("jobs that kill their workers are not found, there is no stream for it: #{e.message}")
    end

    # Writes that this process has no jobs any more. Otherwise it would count as dead, which is one
    # of three deaths for the jobs that it ran.
    def close
      try('closed') if usable?
    end

    # Writes that a job has ended whose begin was written. If the connection is lost, the next one
    # writes it.
    def ended(job)
      key = Begins.key_of(job)
      usable? ? try('ended', jid: key.jid, body: key.body) : @worker.unended << key
    end

    # Writes the ends that the last connection could not write.
    def catch_up
      while usable? && !@worker.unended.empty?
        key = @worker.unended.pop
        try('ended', jid: key.jid, body: key.body)
      end
    end

    # Writes that a redelivered job begins. Returns how many processes died while they ran it.
    # Returns nil if the job must not begin, because the worker stops or has lost the delivery.
    # Called in a thread of a lane.
    def begin(task, job)
      return 0 unless usable?
      return unless task.pause(AFTERMATH)

      key = Begins.key_of(job)
      note(task, job, key) or return (0 unless task.attachment.lost?)
      deaths = count(key, job.queue)
      return deaths if deaths < @worker.max_deaths
      # Wait before the job is buried: a process that seems dead may only be reconnecting.
      return unless task.pause(GRACE)

      @mutex.synchronize { @gone.clear }
      count(key, job.queue)
    end

    private

    def read
      channel = @session.connection.channel
      channel.qos(500)
      on_record = lambda do |number, _, _, body|
        channel.ack(number)
        fold(body.b)
      end
      channel.consume(Wire::BEGINS, @session.next_tag, on_record, arguments: { 'x-stream-offset' => 'first' })
      channel
    end

    # Called by the reader thread, so it must not wait.
    def fold(body)
      own = @mutex.synchronize do
        record = @begins.apply(body)
        next false unless record && record['type'] == 'begun' && record['process'] == @worker.process

        key = @begins.key(record)
        @read[key] += 1 if @read.key?(key)
      end
      @worker.bell.ring if own
    end

    # Writes the begin, and waits until it is read back. Then all earlier records are known too.
    def note(task, job, key)
      gone = look(key, job.queue)
      blames = @mutex.synchronize do
        @read[key] = 0
        @begins.blame(key, job.queue, @worker.process, job.enqueued_at, gone)
      end
      write('begun', READ_BACK, jid: key.jid, body: key.body, blames: blames) { task.attachment.lost? }
      @worker.bell.wait(READ_BACK) { @read[key].to_i.positive? || task.attachment.lost? } && !task.attachment.lost?
    rescue *FAILURES => e
      Report.begin_unwritten(@worker.log, job, e)
      false
    ensure
      @mutex.synchronize { @read.delete(key) }
    end

    def count(key, queue)
      gone = begin
        look(key, queue)
      rescue *FAILURES
        @mutex.synchronize { @gone.dup }
      end
      @mutex.synchronize { @begins.deaths(key, @worker.process, gone) }
    end

    # Checks which of the processes that count for a job are dead. Writes newly found deaths.
    def look(key, queue)
      candidates = @mutex.synchronize { @begins.maybe_dead(key, queue, @worker.process).reject { |_, control| @gone.include?(control) } }
      candidates.each do |process, control|
        next if @session.connection.queue?(control)

        @mutex.synchronize { @gone << control }
        try('died', process: process)
      end
      @mutex.synchronize { @gone.dup }
    end

    def write(type, seconds, process: @worker.process, **members, &given_up)
      record = { type: type, process: process, **members, at: Wire.now }
      message = Wire::Message.new(exchange: '', key: Wire::BEGINS, body: Wire.dump(record))
      @session.publisher.publish_and_wait(message, seconds: seconds, &given_up)
    end

    # Writes a record that may be lost.
    def try(type, **members)
      write(type, SHORT, **members)
    rescue *FAILURES => e
      @worker.log.warn("could not write that a job or process has #{type}: #{e.message}")
    end
  end
end
