# frozen_string_literal: true

module Millrace
  # Enqueues jobs. It is safe to use from several threads. It connects when it is first used, and
  # again when the connection is lost. After a fork, the child opens a connection of its own.
  class Client
    # @param url [String, Array<String>] `amqp://user:password@host:port/vhost`, or `amqps://`. For
    #   a cluster with several hosts: `amqp://user:password@a,b/vhost`, or a list of URLs. The
    #   default is {DEFAULT_URL}
    # @param timeout [Numeric] how many seconds a publish may take, including the wait for a
    #   connection
    # @param fail_fast [Boolean] whether a publish fails as soon as no host can be reached, instead
    #   of waiting for one
    # @param credentials [#call, nil] returns `[username, password]`, in place of those of the URL.
    #   It is called for each connection, the first and each later one. If it raises, or takes more
    #   than 30 seconds, that attempt to connect fails. The next attempt calls it again, or waits
    #   for the call that still runs
    def initialize(url = DEFAULT_URL, timeout: 30, fail_fast: false, credentials: nil)
      @hosts = Hosts.new(url, credentials)
      @timeout = timeout
      @fail_fast = fail_fast
      @middleware = []
      @mutex = Mutex.new
      @closed = false
    end

    # Makes a client, calls the block with it, and closes it when the block ends.
    # @yieldparam client [Client]
    def self.open(url = DEFAULT_URL, **options)
      client = new(url, **options)
      yield client
    ensure
      client&.close
    end

    # Adds middleware around each publish. The first added is the outermost. Middleware may change
    # the job. If it does not call its second parameter, nothing is published and the jid is nil.
    # @yieldparam job [NewJob]
    # @yieldparam next_one [Proc] publishes the job and returns its jid once the broker has
    #   confirmed it. In {#enqueue_bulk} it returns before the confirm; there, errors are raised by
    #   {#enqueue_bulk}
    def use(middleware = nil, &block)
      @middleware << (middleware || block)
      self
    end

    # Publishes a job and returns its jid once the broker has **confirmed** it.
    # @param job_class [String, Class]
    # @param args [Array] only values that JSON has
    # @param deadline [Numeric] how many seconds the publish may take; by default the client's
    #   timeout
    # @param options some of {NewJob::OPTIONS}
    # @return [String, nil] the jid; nil if middleware did not publish the job
    # @raise [Invalid, Refused, Unreachable, Unconfirmed, Closed]
    def enqueue(job_class, args = [], deadline: nil, **options)
      push(NewJob.new(job_class, args, **options), deadline: deadline)
    end

    # Publishes a job that is due at a given time. If the time is past, the job is due immediately.
    # @param time [Time, Numeric] or seconds since the epoch
    # @return (see #enqueue)
    # @raise (see #enqueue)
    def enqueue_at(time, job_class, args = [], deadline: nil, **options)
      push(NewJob.new(job_class, args, at: time, **options), deadline: deadline)
    end

    # Publishes a job that is due after a number of seconds.
    # @param seconds [Numeric]
    # @return (see #enqueue)
    # @raise (see #enqueue)
    def enqueue_in(seconds, job_class, args = [], deadline: nil, **options)
      enqueue_at(Wire.now + seconds, job_class, args, deadline: deadline, **options)
    end

    # Publishes a job, and returns which job stays if there is one with the same key already. It waits
    # until the leader has decided. A job without the option `unique` has `unique: true`.
    # @param at [Time, Numeric, nil] when the job is due; nil: now
    # @param (see #enqueue)
    # @return [Decision, nil] nil if middleware did not publish the job
    # @raise (see #enqueue)
    # @raise [Undecided] if the job is published, and no leader has answered before the deadline
    def enqueue_unique(job_class, args = [], at: nil, deadline: nil, **options)
      decision = nil
      through(NewJob.new(job_class, args, at: at, **options).as_unique) do |job|
        jid, decision = decide(job, deadline || @timeout)
        jid
      end
      decision
    end

    # Delays any AMQP message until a given time. At that time a sidecar publishes the message to its
    # exchange, with one more header, `millrace-jid`. Its setting `--deliver-to` must match the name
    # of the exchange.
    # @param time [Time, Numeric] or seconds since the epoch
    # @param exchange [String] `''` is the default exchange
    # @param routing_key [String]
    # @param body [String] its bytes are sent as they are
    # @param properties [Hash{Symbol => Object}] some of `content_type`, `content_encoding`,
    #   `correlation_id`, `reply_to`, `message_id`, `type`, `app_id`, `expiration` (milliseconds, as
    #   a text), `delivery_mode` (1 or 2), `priority` (0 to 255), `timestamp` and `headers` (only
    #   values that JSON has)
    # @param deadline (see #enqueue)
    # @param options some of {NewJob::OPTIONS} for the job that delivers the message, not `queue`,
    #   `limited`, `limit_key` and `unique`
    # @return (see #enqueue)
    # @raise (see #enqueue)
    def publish_at(time, exchange, routing_key = '', body = '', properties: {}, deadline: nil, **options)
      push(Message.job(time, exchange, routing_key, body, properties, options), deadline: deadline)
    end

    # Delays any AMQP message for a number of seconds.
    # @param seconds [Numeric]
    # @see #publish_at
    # @return (see #enqueue)
    # @raise (see #enqueue)
    def publish_in(seconds, exchange, routing_key = '', body = '', properties: {}, deadline: nil, **options)
      publish_at(Wire.now + seconds, exchange, routing_key, body, properties: properties, deadline: deadline, **options)
    end

    # Publishes many jobs, in order. Waits for all confirms together, and returns when all jobs are
    # answered.
    # @param jobs [Array<NewJob>]
    # @return [Array<String, nil>] the jids
    # @raise [BulkError] if any failed; it has the result of each job
    def enqueue_bulk(jobs, deadline: nil)
      seconds = deadline || @timeout
      sent = jobs.map { |job| attempt { passed(job, seconds) } }
      results = sent.map { |entries| entries.is_a?(Error) ? entries : attempt { answer(entries) } }
      errors = results.each_with_index.select { |result, _| result.is_a?(Error) }.to_h { |error, i| [i, error] }
      jids = results.map { |result| result unless result.is_a?(Error) }
      raise BulkError.new(jids, errors) unless errors.empty?

      jids
    end

    # Publishes a {NewJob}.
    # @param job [NewJob]
    # @return (see #enqueue)
    # @raise (see #enqueue)
    def push(job, deadline: nil)
      jid = nil
      through(job) { |j| jid = publish(j, deadline || @timeout).wait }
      jid
    end

    # Sets all periodic jobs, limits and governed queues of a source, which is the name of a program.
    # What the source had defined before and does not any more is removed. A list that is nil is left
    # as it is. Call it at each deploy: to repeat it changes nothing.
    #
    # The leader carries it out. Without a leader it is tried again until the deadline. The error is
    # Invalid if a definition breaks a rule, and Refused if another source has defined one of them or
    # no sidecar leads.
    # @param source [String]
    # @param jobs [Array<PeriodicJob>, nil]
    # @param limits [Array<Limit>, nil]
    # @param queues [Array<GovernedQueue>, nil]
    # @param deadline (see #enqueue)
    # @return [Defined]
    # @raise (see #enqueue)
    def define(source, jobs = nil, limits: nil, queues: nil, deadline: nil)
      command = Defined.command(source, jobs, limits, queues)
      raise Closed, 'the client was closed' if @closed

      Defined.by(Leader.new(@hosts, fail_fast: @fail_fast) { @closed }.call(command, deadline || @timeout))
    end

    # Closes the connection. Publishes that still wait for an answer fail.
    def close
      line = @mutex.synchronize do
        @closed = true
        @line.tap { @line = nil }
      end
      line.close if line && line.pid == ::Process.pid
    end

    # Does not show the broker's password.
    def inspect
      "#<#{self.class}>"
    end

    private

    def through(job, &publish)
      last = ->(j = job) { publish.call(j) }
      @middleware.reverse.inject(last) { |inner, outer| ->(j = job) { outer.call(j, inner) } }.call
    end

    # Sends one job of a bulk, and returns the entries to wait for. Middleware must not wait for the
    # confirm, because the next job would wait too.
    def passed(job, seconds)
      entries = []
      through(job) { |j| publish(j, seconds).tap { |entry| entries << entry }.jid }
      entries
    end

    # Returns the jid once all entries are confirmed, or nil if middleware published nothing.
    def answer(entries)
      entries.map(&:wait).last
    end

    def publish(job, seconds)
      jid, message = job.prepare(Wire.now)
      line.publish(jid, message, seconds)
    end

    # Sends a job, and returns its jid and the leader's decision.
    def decide(job, seconds)
      jid, message = job.prepare(Wire.now)
      [jid, line.publish(jid, message, seconds, asks: true).decision]
    end

    def attempt
      yield
    rescue Error => e
      e
    end

    def line
      @mutex.synchronize do
        raise Closed, 'the client was closed' if @closed

        @line = Line.new(@hosts, fail_fast: @fail_fast) unless @line && @line.pid == ::Process.pid
        @line
      end
    end
  end
end
