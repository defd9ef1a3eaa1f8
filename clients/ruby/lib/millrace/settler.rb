# frozen_string_literal: true

module Millrace
  # Settles outcomes: it publishes the record, waits for the confirm, and only then acknowledges. It
  # has all jobs that run now, including those whose delivery is lost.
  # @private
  class Settler
    # How many seconds outcomes in progress may take when the worker ends.
    SETTLE_TIME = 2
    # How many seconds handlers have to end after their cancel signal was set.
    LAST_CALL = 0.5

    def initialize(worker)
      @worker = worker
      @mutex = Mutex.new
      @running = {}.compare_by_identity
    end

    def running
      @mutex.synchronize { @running.keys }
    end

    def begin(task)
      @mutex.synchronize { @running[task] = true }
    end

    # Settles a task whose handler has ended. Called in the task's thread.
    def finish(task, job, outcome, ended)
      settle(task, job, outcome, ended) if claim(task, settling: true)
    ensure
      @mutex.synchronize { @running.delete(task) }
      @worker.bell.ring if @worker.stopping?
    end

    # Cancels the job with this jid, if it runs here.
    def cancel(jid)
      running.each { |task| task.end(:cancelled) if task.job&.jid == jid }
    end

    # Sets the stopping flag of all running jobs.
    def stopping
      running.each { |task| task.job&.signal(stopping: true) }
    end

    # Waits until the running jobs have ended, at most for some seconds. Then sets the cancel signal
    # of those that still run.
    def wait(seconds)
      return if @worker.bell.wait(seconds) { running.empty? || @worker.hurried? } && running.empty?

      running.each { |task| task.end(:stopping) }
      @worker.bell.wait(LAST_CALL) { running.empty? }
    end

    # Requeues jobs that still run, and waits for outcomes in progress.
    def hand_back
      running.each do |task|
        next unless claim(task)

        task.attachment.channel.requeue(task.arrival.tag)
        Report.handed_back(@worker.log, task.job) if task.job
      end
      @worker.bell.wait(SETTLE_TIME) { running.none?(&:settling) }
    end

    # Returns whether a task's delivery is lost, so that the broker delivers the job again.
    def lost?(task)
      task.attachment.channel.closed? || task.attachment.session.over?
    end

    private

    def claim(task, settling: false)
      @mutex.synchronize do
        next false if task.claimed

        task.settling = settling
        task.claimed = true
      end
    end

    def settle(task, job, outcome, ended)
      if publish(task, job, outcome) && report_end(task, outcome)
        answer(task, job, outcome, ended)
      elsif job
        measure(task, job, outcome, ended)
      end
      return unless task.suspect && job && outcome.answer != :requeue

      (@worker.session || task.attachment.session).ledger.ended(job)
    end

    # Publishes the record of an outcome, if it has one. Returns false if the delivery is lost.
    def publish(task, job, outcome)
      return true if outcome.record.nil?

      message = Wire::Message.new(exchange: '', key: outcome.stream, body: outcome.record, message_id: Wire.short(job.jid),
                                  type: Wire.short(job.job_class), priority: job.priority,
                                  headers: Wire.trace_headers(job.traceparent))
      confirmed?(task, message) { |refused| Report.record_refused(@worker.log, job, refused) }
    end

    # Reports that a job has ended that holds a slot. Returns false if the delivery is lost.
    def report_end(task, outcome)
      slot = task.slot
      return true unless slot && outcome.ends?

      record = Wire.dump({ 'type' => 'ended', 'slot' => slot, 'process' => @worker.identity, 'at' => Wire.now })
      confirmed?(task, Wire::Message.new(exchange: '', key: Wire::ENDS, body: record)) do |refused|
        Report.end_refused(@worker.log, slot, refused)
      end
    end

    # Publishes until it is confirmed. The block gets each refusal. Returns false if the delivery is
    # lost, because then the broker delivers the job again.
    def confirmed?(task, message)
      pauses = Pauses.new
      until lost?(task)
        refused = try(task, message) or return true
        yield refused
        @worker.bell.wait(pauses.next) { lost?(task) }
      end
      false
    rescue Connection::Lost, ::Timeout::Error
      false
    end

    def try(task, message)
      task.attachment.session.publisher.publish_and_wait(message) { lost?(task) }
      nil
    rescue Refused => e
      e
    end

    def answer(task, job, outcome, ended)
      channel = task.attachment.channel
      channel.public_send(outcome.answer, task.arrival.tag)
      measure(task, job, outcome, ended) if job
      @worker.hooks.call(:death, job, outcome.died) if outcome.died && !channel.closed?
    end

    def measure(task, job, outcome, ended)
      return unless outcome.status

      @worker.metrics.add(Metrics.record(job, outcome, @worker.identity, ended, task.took(ended)))
    end
  end
end
