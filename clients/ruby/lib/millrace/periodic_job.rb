# frozen_string_literal: true

require 'securerandom'

module Millrace
  # A job that the leader enqueues again and again. {Client#define} takes it.
  #
  # @example
  #   Millrace::PeriodicJob.new('nightly-report', 'Report', ['daily'], cron: '0 3 * * *', tz: 'Europe/Stockholm', queue: 'reports')
  class PeriodicJob
    # The options of when a periodic job is due.
    SCHEDULE = %i[cron every tz jitter expires_in grace catch_up catch_up_max overlap except paused].freeze
    # Options of a job that each tick sets.
    OF_TICKS = %i[jid expires_at traceparent].freeze
    private_constant :OF_TICKS

    # @return [String]
    attr_reader :name
    # @return [String] the class that a worker runs
    attr_reader :job_class
    # @return [Array] the arguments: only values that JSON has
    attr_reader :args
    # @return [Hash{Symbol => Object}] some of {SCHEDULE} and of {NewJob::OPTIONS}
    attr_reader :options

    # @param name [String] 1 to 64 letters, digits, dots, hyphens and underscores
    # @param job_class [String, Class]
    # @param args [Array]
    # @param options some of {NewJob::OPTIONS}, and of {SCHEDULE}: either `cron`, with five fields or
    #   a nickname such as `@daily`, or `every`, a whole number of seconds; `tz`, the time zone of
    #   `cron` and `except`; `jitter`, `expires_in` and `grace`, in seconds; `catch_up` (`:skip`,
    #   `:last` or `:all`) and `catch_up_max`; `overlap` (`:allow` or `:skip`); `except`, dates
    #   without ticks; `paused`
    def initialize(name, job_class, args = [], **options)
      @name = name
      @job_class = job_class
      @args = args
      @options = options
    end

    # Returns the definition. Raises Invalid if the job breaks a rule.
    # @return [Hash{String => Object}]
    def definition
      new_job = NewJob.new(job_class, args, **options.except(*SCHEDULE))
      check(new_job)
      _, message = new_job.prepare(Wire.now)
      job = Parse.object(message.body).except('jid', 'retry_count', 'enqueued_at')
      schedule = options.slice(*SCHEDULE).compact.to_h { |option, value| [option.to_s, value.is_a?(Symbol) ? value.to_s : value] }
      { 'name' => name, 'job' => job, **schedule }
    end

    private

    def check(new_job)
      ours = options.keys & OF_TICKS
      raise Invalid, "periodic job #{name.inspect[0, 100]}: each tick sets #{ours.first}" if ours.any?
      raise Invalid, "periodic job #{name.inspect[0, 100]} cannot be unique: set overlap" if new_job.options[:unique]
    end
  end

  # What {Client#define} did, by the names of periodic jobs, limits and governed queues.
  class Defined
    # @return [Array<String>] those that are new
    attr_reader :made
    # @return [Array<String>]
    attr_reader :changed
    # @return [Array<String>] those that the source had defined and does not any more
    attr_reader :forgotten
    # @return [Integer] how many were as they are
    attr_reader :unchanged

    # @private
    def initialize(made: [], changed: [], forgotten: [], unchanged: 0)
      @made = made
      @changed = changed
      @forgotten = forgotten
      @unchanged = unchanged
    end

    # Returns the command that defines all periodic jobs, limits and governed queues of a source. nil
    # leaves what the source has defined of that kind as it is. Raises Invalid if all are nil.
    # @private
    def self.command(source, jobs, limits, queues)
      lists = { 'periodic_jobs' => jobs, 'limits' => limits, 'queues' => queues }.compact
      raise Invalid, 'it defines nothing: pass periodic jobs, limits or queues, which may be empty arrays' if lists.empty?

      definitions = { 'source' => source, **lists.transform_values { |list| list.map(&:definition) } }
      { 'id' => SecureRandom.hex(16), 'command' => 'define', 'definitions' => definitions }
    end

    # Returns what the leader did. Raises Invalid or Refused if it did nothing.
    # @private
    def self.by(reply)
      # 204: it was done before, and that answer was lost.
      return new(**(reply['defined'] || {}).transform_keys(&:to_sym)) if [200, 204].include?(reply['status'])

      raise (reply['status'] == 400 ? Invalid : Refused), reply['reason'].to_s
    end
  end
end
