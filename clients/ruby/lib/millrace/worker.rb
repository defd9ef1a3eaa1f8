# frozen_string_literal: true

require 'securerandom'
require 'set'
require 'socket'

module Millrace
  # Runs the jobs of its queues: those of all classes that include {Handler}, and of those that {#handle} names.
  #
  # @example
  #   worker = Millrace::Worker.new('amqp://localhost', queues: { 'critical' => 3, 'default' => 1 }, concurrency: 10)
  #   worker.handle('Greet') { |job| puts "Hello #{job.args.first}" }
  #   worker.run(signals: true)
  class Worker
    # @return [String] what it is called in heartbeats: `host:pid:tag`
    attr_reader :identity
    # @private
    attr_reader :hosts, :tag, :labels, :stop_timeout, :max_deaths, :version, :declare, :heartbeat, :log, :process, :started_at, :pools,
                :bell, :hooks, :metrics, :settler, :timers, :unended, :session, :paused
    # @private
    attr_writer :beat_due

    # @param url [String, Array<String>] as {Client} takes it: of one host, or of several
    # @param queues [Array<String>, Hash{String => Integer}] strict: the first that has a job is served; or with weights. With
    #   `concurrency` they are the lane `default`; without queues and lanes it is the queue `default`
    # @param concurrency [Integer] how many jobs run at once
    # @param lanes [Array<Lane>] more of them
    # @param tag [String] part of the identity
    # @param labels [Hash{String => String}] shown beside the worker
    # @param stop_timeout [Numeric] how many seconds running jobs may go on after a stop
    # @param max_deaths [Integer] a job that has seen so many workers die is poison; 0: never
    # @param version [String] your program's
    # @param declare [Boolean] whether it declares queues that do not exist, or waits for them
    # @param heartbeat [Numeric] seconds between heartbeats
    # @param logger [Logger, nil] nil: it does not log
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

    # Registers what runs the jobs of a class, before {#run}.
    # @param job_class [String]
    # @param handler [#call, nil] or a block
    # @param retry_in [#call, nil] `(retry_count, error, job)`: the seconds until the next attempt; nil: the default backoff; `:kill`: the
    #   job dies now; `:discard`: it is dropped
    # @param timeout [Numeric, nil] how many seconds a job may run that does not say itself
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

    # Wraps all handlers. The first added is the outermost; what it raises is the job's failure.
    # @yieldparam job [Job]
    # @yieldparam next_one [Proc] runs the job
    # @return [self]
    # @raise [RuntimeError] if the worker has started
    def use(middleware = nil, &block)
      refuse_if_running('middleware')
      @middleware << (middleware || block)
      self
    end

    # Adds a hook: `:startup`, `:quiet`, `:shutdown` (no arguments), `:failure` (job, error), `:death` (job, error).
    #
    # `:failure` is called for each failed attempt, also for one that is retried, in the thread of the job and before its retry or death is
    # published. `:death` is called once the job was given up. A hook that raises is logged, and changes nothing for the job.
    # @yieldparam job [Job]
    # @yieldparam error [Exception] what the handler raised; or {Timeout}, or {UnknownClass}
    # @return [self]
    def on(event, hook = nil, &block)
      @hooks.add(event.to_sym, hook || block)
      self
    end

    # Works until {#stop} is called. It connects again whenever a connection is lost.
    # @param signals [Boolean] SIGTSTP makes the worker quiet, SIGTERM and SIGINT stop it, and a second one stops it at once
    # @raise [Unreachable] if the broker turns the worker away at its first attempt
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

    # Takes no more jobs. What runs goes on. From any thread, but not from a trap.
    def quiet
      return if @quiet

      @quiet = true
      @hooks.call(:quiet)
      changed
    end

    # Makes {#run} return once all jobs have ended, or were handed back when the stop timeout is over. Called again, it does not wait any
    # longer. From any thread, but not from a trap.
    def stop
      return hurry if @stopping

      quiet
      @stopping = true
      @settler.stopping
      @beat_due = true
      @bell.ring
    end

    # Without the URL, which has the broker's password.
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

    # What heartbeats call its state.
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

    # What runs the jobs of a class, with middleware around it; nil: nothing. A class is looked up for each job, and again behind the
    # middleware: a reloader, which middleware may call, replaces it.
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
      @process = SecureRandom.hex(8) # told apart from all others, also from one with the same identity
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
      "#{Socket.gethostname}:#{::Process.pid}:#{@tag}"
    end

    def refuse_if_running(what)
      raise "#{what} must be registered before the worker starts" if @ran
    end

    def hurry
      @hurried = true
      @bell.ring
    end

    # Tells lanes and heartbeat that something else is to be done.
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

    # Works on one connection, and tells why it was lost; nil: the worker has stopped in order.
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

    # Connects in another thread, for that may take longer than there is time when the worker is stopped: nil then.
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
