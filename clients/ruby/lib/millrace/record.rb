# frozen_string_literal: true

module Millrace
  # Writes the record of a job that failed: a small head, and the job's own bytes.
  # @private
  module Record
    MAX_CLASS = 1024
    MAX_MESSAGE = 10_000
    HERE = "#{__dir__}/".freeze

    module_function

    def retry(job, error, failed, due)
      head = { 'type' => 'retry', 'jid' => job.jid, 'retry_at' => due, 'retry_count' => job.retry_count + 1, 'failed_at' => failed }
      write(head.merge(failure(job, error)), job)
    end

    def dead(job, error, reason, died)
      head = { 'type' => 'dead_job', 'jid' => job.jid, 'died_at' => died, 'retry_count' => job.retry_count }
      write(head.merge(failure(job, error), 'reason' => reason), job)
    end

    def write(head, job)
      Wire.splice(Wire.dump(head), comes_back_to(job.raw, job.queue))
    end

    def failure(job, error)
      said = { 'error_class' => error_class(error), 'error_message' => message(error) }
      lines = job.backtrace.positive? ? backtrace(error).first(job.backtrace) : []
      said['backtrace'] = lines.join("\n") unless lines.empty?
      said
    end

    # Returns the error to show: a handler's {Verdict} may wrap another one.
    def shown(error)
      error.is_a?(Verdict) ? error.error || error : error
    end

    # Returns the name of an error: the result of its method `error_class`, or else its class.
    def error_class(error)
      error = shown(error)
      name = error.respond_to?(:error_class) ? error.error_class : error.class.name
      Wire.valid((name || error.class.to_s).to_s).byteslice(0, MAX_CLASS).scrub('')
    rescue StandardError
      error.class.to_s
    end

    def message(error)
      Wire.valid(error.message.to_s)[0, MAX_MESSAGE]
    rescue StandardError => e # the error's own code failed
      "(#{e.class} while its message was asked for)"
    end

    # Returns the stack of an error, innermost line first, without lines of this library.
    def backtrace(error)
      lines = []
      seen = {}.compare_by_identity
      error = shown(error)
      until error.nil? || seen[error] || lines.size > 1000
        lines << "caused by #{error_class(error)}: #{message(error)}" unless seen.empty?
        seen[error] = true
        lines.concat((error.backtrace || []).reject { |line| line.start_with?(HERE) }.map { |line| Wire.valid(line) })
        error = error.cause
      end
      lines
    end

    # Returns the job with the queue that it came from, if it names none. Otherwise it would be
    # retried in the default queue.
    def comes_back_to(raw, queue)
      name = Wire.dump(queue).b
      members = Scan.members(raw)
      found = members.find { |member| member.spelled == 'queue' }
      if found.nil?
        close = raw.rindex('}')
        return raw.byteslice(0, close) << (members.empty? ? '' : ',') << '"queue":' << name << raw.byteslice(close..)
      end
      return raw unless raw.byteslice(found.from...found.to) == 'null'

      raw.byteslice(0, found.from) << name << raw.byteslice(found.to..)
    end
  end
end
