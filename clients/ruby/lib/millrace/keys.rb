# frozen_string_literal: true

module Millrace
  module Testing
    # The keys of unique jobs. Nothing is put off in a test, so `wait` and `max` do nothing.
    # @private
    class Keys
      # The job that has a key. A job that is over has it until a time.
      Taken = Struct.new(:jid, :until, :over)

      def initialize
        @taken = {}
      end

      # Gives a job its key, or returns which job has it. The block removes a job that waits, by its
      # jid, and returns whether it did.
      def decide(job)
        unique = unique_of(job) or return Decision.new(job.jid)
        key = key_of(job, unique)
        holder = @taken[key]
        held = holder && (!holder.over || Wire.ticks < holder.until)
        return Decision.new(holder.jid, duplicate: true) if held && !(unique['on'] == 'replace' && yield(holder.jid))

        @taken[key] = Taken.new(job.jid, Wire.ticks + unique.fetch('for', 0), false)
        Decision.new(job.jid)
      end

      # Frees the key of a job that has it only while it waits.
      def begins(job)
        ends(job) if unique_of(job)&.fetch('while', nil) == 'waiting'
      end

      # Frees the key of a job, if it does not have it for a longer time.
      def ends(job)
        unique = unique_of(job) or return
        holder = @taken[key_of(job, unique)]
        holder.over = true if holder&.jid == job.jid
      end

      # Frees all keys.
      def clear
        @taken.clear
      end

      private

      def unique_of(job)
        gate = job.members['gate']
        gate['unique'] if gate.is_a?(Hash)
      end

      def key_of(job, unique)
        return ['key', unique['key']] if unique.key?('key')

        ['by', unique.fetch('by', %w[class queue args]).uniq.sort.map { |path| [path, part(job.members, path)] }]
      end

      # Returns the value at a path, in an array of its own, or an empty array if there is none.
      def part(value, path)
        path.split('.').each do |step|
          step = Integer(step, exception: false) if value.is_a?(Array)
          return [] unless step && (value.is_a?(Array) ? value.size > step : value.is_a?(Hash) && value.key?(step))

          value = value[step]
        end
        [value]
      end
    end
  end
end
