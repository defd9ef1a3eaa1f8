# frozen_string_literal: true

# 'digest' would load this at its first use, maybe in several threads at the same time.
require 'digest/sha2'
require 'set'

module Millrace
  # Folds the stream `jobs.begins`, from which workers find jobs that kill their workers.
  # @private
  class Begins
    # How many seconds a dead process, or a job that never ended, is remembered.
    MEMORY = 72 * 3600

    # The identity of a job. The jid alone is not enough: two jobs may share it.
    Key = Struct.new(:jid, :body)

    # A worker process, as the stream describes it. `queue` is its exclusive queue, which vanishes
    # with its connection. `opened` is the number of its latest record of that type.
    Process = Struct.new(:queue, :queues, :opened, :heard, :died, :closed) do
      # Returns whether the process died, or vanished without closing.
      def dead?(gone)
        !closed && (!died.nil? || gone.include?(queue))
      end

      def ended?
        closed || !died.nil?
      end
    end

    # A job that began after an earlier delivery, and the processes in which it began or may have
    # begun.
    Suspect = Struct.new(:processes, :heard)

    def self.key_of(job)
      Key.new(job.jid, Digest::SHA256.hexdigest(job.raw)[0, 16])
    end

    def initialize
      @processes = {}
      @suspects = {}
      @records = 0
    end

    # Folds one record, and returns it. Returns nil if the body is not a record.
    def apply(body)
      record = Parse.json(body)
      return unless record.is_a?(Hash) && record['process'].is_a?(String)

      @records += 1
      fold(record, Wire.clock(record['at']) || 0.0)
      record
    rescue ArgumentError
      nil
    end

    def fold(record, at)
      process = @processes[record['process']]
      case record['type']
      when 'opened' then opened(record, at)
      when 'died' then process.died = process.heard = at if process && process.died.nil?
      when 'closed' then closed(process, at) if process
      when 'begun' then begun(key(record), record['process'], record['blames'], at)
      when 'ended' then @suspects.delete(key(record))
      end
      forget(at - MEMORY) if (@records % 1000).zero?
    end

    def opened(record, at)
      queues = Array(record['queues']).grep(String)
      @processes[record['process']] = Process.new(record['queue'].to_s, queues, @records, at, nil, false)
    end

    def closed(process, at)
      process.closed = true
      process.heard = at
    end

    def key(record)
      Key.new(record['jid'].to_s, record['body'].to_s)
    end

    # Notes that a job began.
    def begun(key, process, blames, at)
      suspect = (@suspects[key] ||= Suspect.new(Set.new, at))
      suspect.heard = at
      [process, blames].each { |p| suspect.processes << p if p.is_a?(String) && !p.empty? }
    end

    def forget(before)
      @suspects.delete_if { |_, suspect| suspect.heard < before }
      @processes.delete_if { |_, process| process.ended? && process.heard < before }
    end

    # Returns the exclusive queues of the processes that count for a job and may be dead, by
    # process. If such a queue does not exist, its process is dead.
    def maybe_dead(key, queue, own)
      suspect = @suspects[key]
      matter = @processes.reject { |name, process| name == own || process.ended? }
      matter.select { |name, process| suspect ? suspect.processes.include?(name) : process.queues.include?(queue) }
            .transform_values(&:queue)
    end

    # Returns the process that is blamed for the earlier delivery of an unknown job, or ''. It is
    # the process that opened last, of the dead ones that consumed the job's queue and did not die
    # before the job was enqueued.
    def blame(key, queue, own, enqueued_at, gone)
      return '' if @suspects.key?(key)

      dead = @processes.select do |name, process|
        name != own && process.dead?(gone) && process.queues.include?(queue) &&
          (process.died.nil? || enqueued_at.nil? || process.died >= enqueued_at)
      end
      (dead.max_by { |_, process| process.opened } || ['']).first
    end

    # Counts the dead processes in which a job began.
    def deaths(key, own, gone)
      names = @suspects[key] ? @suspects[key].processes : []
      names.count { |name| name != own && @processes[name]&.dead?(gone) }
    end
  end
end
