# frozen_string_literal: true

module Millrace
  # Sends one record for each job, in arrays. Adding a record never blocks: one that does not fit is
  # dropped and counted.
  # @private
  class Metrics
    KEPT = 10_000
    AT_ONCE = 500
    AFTER = 1.0
    LONGEST_WAIT = 10**12 # ms; a longer wait means that a clock is wrong

    # Returns the JSON of an attempt that ended at `ended` and took some seconds.
    def self.record(job, outcome, identity, ended, took)
      record = +%({"type":"job_metric","timestamp":#{ended},"job_class":#{common(job.job_class)},"queue":#{common(job.queue)},)
      record << %("duration_ms":#{(took * 1000).to_i},"status":"#{outcome.status}","worker_identity":#{common(identity)},)
      record << %("jid":#{text(job.jid)},)
      wait = waited(job, ended - took)
      record << %("wait_ms":#{wait},) if wait
      record << %("attempt":#{job.attempt})
      record << %(,"error_class":#{text(outcome.error_class)}) if outcome.error_class
      record << '}'
    end

    # Encodes a text as JSON. Most texts need no escapes, and this runs for each job.
    def self.text(text)
      text.match?(/\A[\w.:-]*\z/) ? %("#{text}") : Wire.dump(text)
    end

    # The same, with a cache, for texts that occur often.
    def self.common(text)
      @common = {} if @common.size > 1000
      @common[text] ||= text(text)
    end
    @common = {}

    def self.waited(job, began)
      return if job.retry_count.positive? || job.enqueued_at.nil?

      wait = [((began - job.enqueued_at) * 1000).to_i, 0].max
      wait if wait <= LONGEST_WAIT
    end

    attr_reader :dropped

    def initialize
      @dropped = 0
      @records = []
      @mutex = Mutex.new
      @more = ConditionVariable.new
      @flushing = Mutex.new
      @closed = false
    end

    # Adds a record.
    def add(record)
      @mutex.synchronize do
        if @records.size >= KEPT
          @dropped += 1
        else
          @records << record
          @more.signal if @records.size == 1 || @records.size == AT_ONCE
        end
      end
    end

    # Sets the function that sends: `send.call(body)`, which raises Connection::Lost if it cannot
    # send.
    def attach(send)
      @flushing.synchronize { @send = send }
      flush
    end

    # Sends when there are enough records, or one second after the first, until it is closed.
    def run
      until @closed
        @mutex.synchronize do
          @more.wait(@mutex) while @records.empty? && !@closed
          @more.wait(@mutex, AFTER) if @records.size < AT_ONCE && !@closed
        end
        sleep AFTER unless flush || @closed # without a connection, it waits for the next one
      end
    end

    # Sends all records, and returns whether that was possible.
    def flush
      @flushing.synchronize do
        until (batch = @mutex.synchronize { @records.first(AT_ONCE) }).empty?
          return false unless @send

          @send.call("[#{batch.join(',')}]")
          @mutex.synchronize { @records.shift(batch.size) }
        end
      end
      true
    rescue Connection::Lost
      @flushing.synchronize { @send = nil }
      false
    end

    def close
      @mutex.synchronize do
        @closed = true
        @more.broadcast
      end
    end
  end
end
