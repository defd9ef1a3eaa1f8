# frozen_string_literal: true

require 'digest/sha2' # 'digest' would load it at its first use, when several threads may need it
require 'set'

module Millrace
  # The fold of the stream of begins, by which workers find jobs that kill them.
  # @private
  class Begins
    # How many seconds a dead process, or a job that never ended, is remembered.
    MEMORY = 72 * 3600

    # What tells jobs apart: two with one jid are not the same job.
    Key = Struct.new(:jid, :body)

    # A worker process, as the stream tells. Its queue vanishes with its connection; `opened` numbers its latest record of that type.
    Process = Struct.new(:queue, :queues, :opened, :heard, :died, :closed) do
      # Tells whether it is known to be dead, or gone without a word.
      def dead?(gone)
        !closed && (!died.nil? || gone.include?(queue))
      end

      def ended?
        closed || !died.nil?
      end
    end

    # A job that began after it had been delivered before, and the processes in which it began, or may have.
    Suspect = Struct.new(:processes, :heard)

    def self.key_of(job)
      Key.new(job.jid, Digest::SHA256.hexdigest(job.raw)[0, 16])
    end

    def initialize
      @processes = {}
      @suspects = {}
      @records = 0
    end

    # Folds one record, and gives it if it is one.
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

    # Notes that a job begins.
    def begun(key, process, blames, at)
      suspect = (@suspects[key] ||= Suspect.new(Set.new, at))
      suspect.heard = at
      [process, blames].each { |p| suspect.processes << p if p.is_a?(String) && !p.empty? }
    end

    def forget(before)
      @suspects.delete_if { |_, suspect| suspect.heard < before }
      @processes.delete_if { |_, process| process.ended? && process.heard < before }
    end

    # The queues by which to find out whether processes live that matter for a job, by process.
    def doubtful(key, queue, own)
      suspect = @suspects[key]
      matter = @processes.reject { |name, process| name == own || process.ended? }
      matter.select { |name, process| suspect ? suspect.processes.include?(name) : process.queues.include?(queue) }
            .transform_values(&:queue)
    end

    # Names the process that is to have begun a job of which nothing is known: of the dead that consumed its queue when the job was
    # there, it is the one that opened last.
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
