# frozen_string_literal: true

module Millrace
  # One record a job, sent as arrays. Adding one never blocks: what does not fit is dropped and counted.
  # @private
  class Metrics
    KEPT = 10_000
    AT_ONCE = 500
    AFTER = 1.0
    LONGEST_WAIT = 10**12 # ms; more is somebody's clock

    # Writes down, as JSON, an attempt that ended just now and took some seconds.
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

    # A text as JSON: most need no escapes, and this is done for each job.
    def self.text(text)
      text.match?(/\A[\w.:-]*\z/) ? %("#{text}") : Wire.dump(text)
    end

    # The same for texts of which there are few.
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

    # Puts a record in.
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

    # Sends by this from now on: `send.call(body)`, which raises Connection::Lost when it cannot.
    def attach(send)
      @flushing.synchronize { @send = send }
      flush
    end

    # Sends whenever there are enough, or one second after the first, until it is closed.
    def run
      until @closed
        @mutex.synchronize do
          @more.wait(@mutex) while @records.empty? && !@closed
          @more.wait(@mutex, AFTER) if @records.size < AT_ONCE && !@closed
        end
        sleep AFTER unless flush || @closed # no connection: it waits for the next
      end
    end

    # Sends what there is, and tells whether that was possible.
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
