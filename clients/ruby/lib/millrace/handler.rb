# frozen_string_literal: true

module Millrace
  # A class that includes this module runs jobs in its method `perform`. A worker runs the jobs of
  # all such classes that its process has loaded. It also loads a class by the name in a job, if
  # `autoload` (which Zeitwerk uses) has that name.
  #
  # @example
  #   class Greet
  #     include Millrace::Handler
  #     millrace_options queue: 'mail', retry: 5, timeout: 30
  #     millrace_retry_in { |count, error, job| 10 * (count + 1) }
  #
  #     def perform(name)
  #       puts "Hello #{name}, attempt #{job.attempt}"
  #     end
  #   end
  #
  #   Greet.perform_async('Ann')
  #   Greet.perform_in(60, 'Bob')
  #   Greet.set(queue: 'critical', priority: 9).perform_async('Cleo')
  module Handler
    @classes = [] # replaced, and never changed in place
    @index = []
    @frameworks = []
    @mutex = Mutex.new

    # @return [Job] the job that runs: its id, its attempt, whether it should end
    attr_accessor :job

    # @private
    def self.included(base)
      base.extend(ClassMethods)
      add(base)
    end

    # @private
    def self.add(handler)
      # A reloaded class replaces its old version.
      change { |classes| classes.reject { |other| other.name && other.name == handler.name } | [handler] }
    end

    # Replaces the list of all classes. Several threads may load classes concurrently.
    # @private
    def self.change
      @mutex.synchronize { @classes = yield @classes }
    end

    # Returns the class that handles jobs of this name, or nil. If several do, the last one loaded
    # wins. Called for each job.
    # @private
    def self.find(job_class)
      _, named, nameless = index
      nameless.reverse_each.find { |handler| name_of(handler) == job_class } || named[job_class]
    end

    # Returns the list of all classes, the named ones by the name of their jobs, and the nameless
    # ones, which may get a name later.
    # @private
    def self.index
      classes = @classes
      index = @index
      return index if index.first.equal?(classes)

      nameless, named = classes.partition { |handler| name_of(handler).nil? }
      @index = [classes, named.to_h { |handler| [name_of(handler), handler] }, nameless]
    end

    # Adds a framework whose classes run jobs too. The block gets the constant that a job's class
    # names, and returns an {Entry} or nil.
    # @private
    def self.framework(&block)
      @frameworks << block
    end

    # Returns how a worker runs the jobs of this name, or nil if no class does. Loads the class by
    # its name if it is not loaded, or was unloaded by a reload.
    # @private
    def self.entry_of(job_class)
      constant = load_constant(job_class)
      found = find(job_class)
      return entry(found) if found

      @frameworks.filter_map { |framework| framework.call(constant) }.first if constant
    end

    # The name of a constant, with its namespaces.
    PATH = /\A\p{Lu}\p{Word}*(?:::\p{Lu}\p{Word}*)*\z/
    # The maximum length of such a name.
    LONGEST = 255
    private_constant :PATH, :LONGEST

    # Loads a constant. The name comes from a message, so it calls nothing, and looks up only
    # constants that exist or have an autoload.
    # @private
    def self.load_constant(name)
      return unless name.size <= LONGEST && PATH.match?(name)

      name.split('::').inject(Object) do |outer, part|
        break unless outer.is_a?(Module) && outer.const_defined?(part, false)

        outer.const_get(part, false)
      end
    end

    # Raises ArgumentError if two loaded classes, or a class and one of these handlers, run jobs of
    # the same name. A class that was loaded again under its own name replaces itself.
    # @private
    def self.check_unique(handlers)
      named = @classes.select { |handler| name_of(handler) }.group_by { |handler| name_of(handler) }
      named.each do |job_class, found|
        owners = found.map { |handler| handler.name || handler.inspect }.uniq
        owners << "the handler at #{handlers[job_class].where}" if handlers.key?(job_class)
        raise ArgumentError, "class #{job_class} has two handlers: #{owners.join(' and ')}" if owners.size > 1
      end
    end

    # Returns the name that a class's jobs have.
    # @private
    def self.name_of(handler)
      (handler.millrace_class if handler.respond_to?(:millrace_class)) || handler.name
    end

    # Returns the options for the jobs of a class.
    # @private
    def self.options_of(handler)
      handler.respond_to?(:millrace_options) ? handler.millrace_options.dup : {}
    end

    # Returns how a worker runs the jobs of a class.
    # @private
    def self.entry(handler)
      run = lambda do |job|
        one = handler.new
        one.job = job
        job.args.is_a?(Array) ? one.perform(*job.args) : one.perform(job.args)
      end
      place = handler.instance_method(:perform).source_location
      Entry.new(run, handler.millrace_retry_in, handler.millrace_options[:timeout], place)
    end

    # The class methods of a class that includes {Handler}.
    module ClassMethods
      # @private
      def inherited(handler)
        super
        Handler.add(handler)
      end

      # Sets options for the jobs that this class enqueues: some of {NewJob::OPTIONS}. The `timeout`
      # also applies to jobs from other producers that have none.
      # @return [Hash{Symbol => Object}] all options set so far
      def millrace_options(**options)
        @millrace_options ||= superclass.respond_to?(:millrace_options) ? superclass.millrace_options.dup : {}
        @millrace_options.merge!(options)
      end

      # Sets the name that jobs of this class have, if it is not the name of the class.
      # @return [String, nil]
      def millrace_class(name = nil)
        return @millrace_class unless name

        @millrace_class = name
        Handler.change(&:dup)
        name
      end

      # Sets a function for the time until the next attempt. The block returns seconds, or nil for
      # the default backoff. It may also return `:kill`, to make the job dead now, or `:discard`, to
      # drop it.
      # @yieldparam count [Integer] how often the job had failed before
      # @yieldparam error [Exception]
      # @yieldparam job [Job]
      # @return [Proc, nil]
      def millrace_retry_in(&block)
        @millrace_retry_in = block if block
        @millrace_retry_in || (superclass.millrace_retry_in if superclass.respond_to?(:millrace_retry_in))
      end

      # Enqueues a job with {Millrace.client}.
      # @return [String, nil] the jid
      # @raise (see Client#enqueue)
      def perform_async(*args)
        set.perform_async(*args)
      end

      # Enqueues a job with {Millrace.client}, and returns which job stays.
      # @return [Decision, nil]
      # @raise (see Client#enqueue_unique)
      def perform_unique(*args)
        set.perform_unique(*args)
      end

      # Enqueues a job that is due after a number of seconds.
      # @return (see #perform_async)
      # @raise (see Client#enqueue)
      def perform_in(seconds, *args)
        set.perform_in(seconds, *args)
      end

      # Enqueues a job that is due at a given time.
      # @return (see #perform_async)
      # @raise (see Client#enqueue)
      def perform_at(time, *args)
        set.perform_at(time, *args)
      end

      # Enqueues a job for each array of args.
      # @param all [Array<Array>]
      # @return [Array<String, nil>] the jids
      # @raise (see Client#enqueue_bulk)
      def perform_bulk(all)
        Millrace.client.enqueue_bulk(all.map { |args| NewJob.new(self, args) })
      end

      # Returns the class with options for one job.
      # @param options some of {NewJob::OPTIONS}, and `deadline`
      # @return [Setter]
      def set(**options)
        Setter.new(self, options)
      end
    end

    # A handler class with options for the job to enqueue.
    class Setter
      # @private
      def initialize(handler, options)
        @handler = handler
        @options = options
      end

      # (see ClassMethods#perform_async)
      def perform_async(*args)
        Millrace.client.enqueue(@handler, args, **@options)
      end

      # (see ClassMethods#perform_unique)
      def perform_unique(*args)
        Millrace.client.enqueue_unique(@handler, args, **@options)
      end

      # (see ClassMethods#perform_in)
      def perform_in(seconds, *args)
        Millrace.client.enqueue_in(seconds, @handler, args, **@options)
      end

      # (see ClassMethods#perform_at)
      def perform_at(time, *args)
        Millrace.client.enqueue_at(time, @handler, args, **@options)
      end
    end
  end
end
