# frozen_string_literal: true

require 'securerandom'
require 'set'
require 'socket'

module Millrace
  # Runs the jobs of its queues. The handlers are the classes that include {Handler}, and those that
  # {#handle} registers.
  #
  # @example
  #   queues = { 'critical' => 3, 'default' => 1 }
  #   worker = Millrace::Worker.new('amqp://localhost', queues: queues, concurrency: 10)
  #   worker.handle('Greet') { |job| puts "Hello #{job.args.first}" }
  #   worker.run(signals: true)
  class Worker
    # @return [String] the worker's name in heartbeats: `host:pid`, and `:tag` if it has one
    attr_reader :identity
    # @private
    attr_reader :hosts, :tag, :labels, :stop_timeout, :max_deaths, :version, :declare, :heartbeat, :log, :process, :started_at, :pools,
                :bell, :hooks, :metrics, :settler, :timers, :unended, :session, :paused
    # @private
    attr_writer :beat_due

    # @param url [String, Array<String>] as {Client} takes it: of one host, or of several
    # @param queues [Array<String>, Hash{String => Integer}] strict order: the first queue that has
    #   a job is served; or queues with their weights. With `concurrency` they are the lane
    #   `default`. Without queues and lanes, the worker serves the queue `default`
    # @param concurrency [Integer] how many jobs run concurrently
    # @param lanes [Array<Lane>] further lanes
    # @param tag [String] part of the identity
    # @param labels [Hash{String => String}] shown beside the worker
    # @param stop_timeout [Numeric] how many seconds running jobs may continue after a stop
    # @param max_deaths [Integer] after how many deaths of workers a job is poison; 0: never
    # @param version [String] your program's
    # @param declare [Boolean] whether it declares queues that do not exist, or waits for them
    # @param heartbeat [Numeric] seconds between heartbeats
    # @param logger [Logger, nil] nil: the worker logs nothing
    # @param credentials [#call, nil] as {Client} takes it
    def initialize(url = DEFAULT_URL, queues: nil, concurrency: Lane::CONCURRENCY, lanes: [], tag: '', labels: {}, stop_timeout: 25,
                   max_deaths: 3, version: VERSION, declare: true, heartbeat: 10, logger: Millrace.logger, credentials: nil)
      raise ArgumentError, "the tag #{tag.inspect} has a colon" if tag.include?(':')

      @hosts = Hosts.new(url, credentials)
      @tag = tag
      @labels = labels
      @stop_timeout = stop_timeout
      @max_deaths = max_deaths
      @version = version
      @declare = declare
      @heartbeat = heartbeat
      @log = logger || Logger.new(nil)
      @pools = Lane.all(queues, concurrency, lanes).map { |lane| Pool.new(self, lane) }
      prepare
    end

    # Registers the handler for the jobs of a class. Call it before {#run}.
    # @param job_class [String]
    # @param handler [#call, nil] or a block
    # @param retry_in [#call, nil] gets `(retry_count, error, job)`, and returns the seconds until
    #   the next attempt; nil for the default backoff; `:kill` to make the job dead now; or
    #   `:discard` to drop it
    # @param timeout [Numeric, nil] how many seconds a job may run that has no timeout of its own
    # @yieldparam job [Job]
    # @return [self]
    # @raise [ArgumentError] if the class has a handler already
    # @raise [RuntimeError] if the worker has started
    def handle(job_class, handler = nil, retry_in: nil, timeout: nil, &block)
      call = handler || block
      raise ArgumentError, "what runs #{job_class} has no method call" unless call.respond_to?(:call)

      refuse_if_running("the handler of #{job_class}")
      place = call.respond_to?(:source_location) ? call : call.method(:call)
      entry = Entry.new(call, retry_in, timeout, place.source_location)
      other = @handlers[job_class.to_s]
      raise ArgumentError, "class #{job_class} has two handlers, at #{other.where} and at #{entry.where}" if other

      @handlers[job_class.to_s] = entry
      self
    end

    # Adds middleware around all handlers. The first added is the outermost. An error that it raises
    # is a failure of the job.
    # @yieldparam job [Job]
    # @yieldparam next_one [Proc] runs the job
    # @return [self]
    # @raise [RuntimeError] if the worker has started
    def use(middleware = nil, &block)
      refuse_if_running('middleware')
      @middleware << (middleware || block)
      self
    end

    # Adds a hook: `:startup`, `:quiet`, `:shutdown` (no arguments), `:failure` (job, error),
    # `:death` (job, error).
    #
    # `:failure` is called for each failed attempt, also for one that is retried. It runs in the
    # thread of the job, before its retry or death is published. `:death` is called after a job was
    # given up. A hook that raises is logged, and changes nothing for the job.
    # @yieldparam job [Job]
    # @yieldparam error [Exception] the error that the handler raised; or {Timeout}, or
    #   {UnknownClass}
    # @return [self]
    # @raise [RuntimeError] if the worker has started
    def on(event, hook = nil, &block)
      refuse_if_running("the hook #{event}")
      @hooks.add(event.to_sym, hook || block)
      self
    end

    # Runs jobs until {#stop} is called. It reconnects when a connection is lost.
    # @param signals [Boolean] whether signals control the worker: SIGTSTP makes it quiet, SIGTERM
    #   and SIGINT stop it, and a second one stops it immediately
    # @raise [Unreachable] if the broker refuses the worker at its first attempt
    # @raise [ArgumentError] if a class has two handlers
    def run(signals: false)
      raise 'a worker runs once' if @ran

      Handler.check_unique(@handlers)
      @ran = true
      @identity = identify
      traps = Signals.new(self) if signals
      work
    ensure
      traps&.restore
    end

    # Makes the worker take no more jobs. Running jobs continue. Call it from any thread, but not
    # from a trap.
    def quiet
      return if @quiet

      @quiet = true
      @hooks.call(:quiet)
      changed
    end

    # Makes {#run} return once all jobs have ended, or were handed back when the stop timeout is
    # over. A second call ends the wait. Call it from any thread, but not from a trap.
    def stop
      return hurry if @stopping

      quiet
      @stopping = true
      @settler.stopping
      @beat_due = true
      @bell.ring
    end

    # Does not show the URL, which has the broker's password.
    def inspect
      "#<#{self.class} #{@identity}>"
    end

    # @private
    def quiet?
      @quiet
    end

    # @private
    def stopping?
      @stopping
    end

    # @private
    def hurried?
      @hurried
    end

    # @private
    def beat_due?
      @beat_due
    end

    # Returns the state in heartbeats.
    # @private
    def state
      return 'stopping' if @stopping

      @quiet ? 'quiet' : 'running'
    end

    # @private
    def paused=(queues)
      @paused = queues.to_set
    end

    # @private
    def pause(queue)
      self.paused = @paused | [queue]
      changed
    end

    # @private
    def resume(queue)
      self.paused = @paused - [queue]
      changed
    end

    # Returns the handler of a class, with the middleware around it, or nil. The class is looked up
    # for each job, and again inside the middleware, because a reloader in the middleware replaces
    # the class.
    # @private
    def handler(job_class)
      found = entry(job_class)
      return found if found.nil? || @middleware.empty?

      run = ->(job) { call_through(job) { (entry(job_class) || raise(UnknownClass, job_class)).run(job) } }
      Entry.new(run, found.retry_in, found.timeout, found.place)
    end

    # @private
    def entry(job_class)
      @handlers[job_class] || Handler.entry_of(job_class)
    end

    # @private
    def call_through(job, &last)
      @middleware.reverse.inject(last) { |inner, outer| -> { outer.call(job, inner) } }.call
    end

    private

    def prepare
      @process = SecureRandom.hex(8) # unique, also among processes with the same identity
      @identity = identify
      @started_at = Wire.now
      @bell = Bell.new
      @hooks = Hooks.new(@log)
      @metrics = Metrics.new
      @settler = Settler.new(self)
      @timers = Timers.new
      @unended = Thread::Queue.new
      @paused = Set.new
      @handlers = {}
      @middleware = []
      @quiet = @stopping = @hurried = @beat_due = @ran = false
    end

    def identify
      [Socket.gethostname, ::Process.pid, @tag].join(':').delete_suffix(':')
    end

    def refuse_if_running(what)
      raise "#{what} must be registered before the worker starts" if @ran
    end

    def hurry
      @hurried = true
      @bell.ring
    end

    # Makes lanes and heartbeat react to a change.
    def changed
      @pools.each { |pool| pool.attachment&.changed }
      @beat_due = true
      @bell.ring
    end

    def work
      @hooks.start
      flushing = Thread.new { @metrics.run }
      sessions
    ensure
      @pools.each(&:close)
      @timers.close
      @metrics.close
      flushing&.join
      @hooks.close
      Report.stopped(@log, self) if @session
    end

    def sessions
      pauses = Pauses.new
      until @stopping
        why = connected { pauses = Pauses.new } or return
        break if @stopping

        @log.warn("no connection to the broker, trying again: #{why.message}")
        @bell.wait(pauses.next) { @stopping }
      end
      @settler.wait(@stop_timeout)
      @settler.hand_back
      @hooks.call_and_wait(:shutdown)
    end

    # Works on one connection, and returns why it was lost. Returns nil when the worker has stopped.
    def connected
      session = connect
      return Connection::Lost.new('stopped') unless session

      yield
      started unless @session
      @session = session
      session.run
    rescue Connection::Lost => e
      raise Unreachable, "the broker turns us away: #{e.message}" if @session.nil? && e.unwelcome?

      e
    end

    def started
      Report.started(@log, self)
      @hooks.call(:startup)
    end

    # Connects in another thread, because a stop must not wait for that. Returns nil if the worker
    # stops meanwhile.
    def connect
      session = error = nil
      Thread.new do
        session = Session.open(self)
        session.connection.drop if @stopping
      rescue Connection::Lost => e
        error = e
      rescue StandardError => e
        error = Connection::Lost.new(e)
      ensure
        @bell.ring
      end
      @bell.wait { session || error || @stopping }
      raise error if error

      session unless @stopping
    end
  end
end
