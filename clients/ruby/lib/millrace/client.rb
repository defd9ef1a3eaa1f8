# frozen_string_literal: true

module Millrace
  # Enqueues jobs. It is safe to use from several threads, connects when it has to, and again when a connection is lost. A fork is
  # survived: the child connects for itself.
  class Client
    # @param url [String, Array<String>] `amqp://user:password@host:port/vhost`, or `amqps://`; of a cluster with several hosts,
    #   `amqp://user:password@a,b/vhost`, or a list of URLs. Without one it is {DEFAULT_URL}
    # @param timeout [Numeric] how many seconds a publish may take; without a broker, it waits that long for one
    # @param fail_fast [Boolean] whether a publish fails as soon as no host can be reached, instead of waiting for one
    # @param credentials [#call, nil] returns `[username, password]`, in place of those of the URL. It is called for each connection, the
    #   first and each later one. If it raises, or takes more than 30 seconds, that attempt to connect fails. The next one calls it again,
    #   or waits for the call that still runs
    def initialize(url = DEFAULT_URL, timeout: 30, fail_fast: false, credentials: nil)
      @hosts = Hosts.new(url, credentials)
      @timeout = timeout
      @fail_fast = fail_fast
      @middleware = []
      @mutex = Mutex.new
      @closed = false
    end

    # Makes a client, and closes it when the block has ended.
    # @yieldparam client [Client]
    def self.open(url = DEFAULT_URL, **options)
      client = new(url, **options)
      yield client
    ensure
      client&.close
    end

    # Wraps each publish. The first added is the outermost. It may change the job, or not call the second parameter: then nothing is
    # published and the jid is nil.
    # @yieldparam job [NewJob]
    # @yieldparam next_one [Proc] publishes the job and returns its jid: once it is confirmed, but in {#enqueue_bulk} before that, which
    #   raises then what went wrong
    def use(middleware = nil, &block)
      @middleware << (middleware || block)
      self
    end

    # Publishes a job and returns its jid once the broker has **confirmed** it.
    # @param job_class [String, Class]
    # @param args [Array] what JSON has, and nothing else
    # @param deadline [Numeric] how many seconds that may take, if not the client's timeout
    # @param options some of {NewJob::OPTIONS}
    # @return [String, nil] the jid; nil where middleware did not let the job pass
    # @raise [Invalid, Refused, Unreachable, Unconfirmed, Closed]
    def enqueue(job_class, args = [], deadline: nil, **options)
      push(NewJob.new(job_class, args, **options), deadline: deadline)
    end

    # Publishes a job that is due at a time. One in the past is due at once.
    # @param time [Time, Numeric] or seconds since the epoch
    # @return (see #enqueue)
    # @raise (see #enqueue)
    def enqueue_at(time, job_class, args = [], deadline: nil, **options)
      push(NewJob.new(job_class, args, at: time, **options), deadline: deadline)
    end

    # Publishes a job that is due in some seconds.
    # @param seconds [Numeric]
    # @return (see #enqueue)
    # @raise (see #enqueue)
    def enqueue_in(seconds, job_class, args = [], deadline: nil, **options)
      enqueue_at(Wire.now + seconds, job_class, args, deadline: deadline, **options)
    end

    # Publishes many jobs, in order, in one window, and returns when all are answered.
    # @param jobs [Array<NewJob>]
    # @return [Array<String, nil>] the jids
    # @raise [BulkError] if any failed; it says what became of each
    def enqueue_bulk(jobs, deadline: nil)
      seconds = deadline || @timeout
      sent = jobs.map { |job| attempt { passed(job, seconds) } }
      results = sent.map { |entries| entries.is_a?(Error) ? entries : attempt { answer(entries) } }
      errors = results.each_with_index.select { |result, _| result.is_a?(Error) }.to_h { |error, i| [i, error] }
      jids = results.map { |result| result unless result.is_a?(Error) }
      raise BulkError.new(jids, errors) unless errors.empty?

      jids
    end

    # Publishes a job that is made already.
    # @param job [NewJob]
    # @return (see #enqueue)
    # @raise (see #enqueue)
    def push(job, deadline: nil)
      jid = nil
      through(job) { |j| jid = publish(j, deadline || @timeout).wait }
      jid
    end

    # Ends the connection. Publishes that wait for an answer fail.
    def close
      line = @mutex.synchronize do
        @closed = true
        @line.tap { @line = nil }
      end
      line.close if line && line.pid == ::Process.pid
    end

    # Without the broker's password.
    def inspect
      "#<#{self.class}>"
    end

    private

    def through(job, &publish)
      last = ->(j = job) { publish.call(j) }
      @middleware.reverse.inject(last) { |inner, outer| ->(j = job) { outer.call(j, inner) } }.call
    end

    # Sends one of many, and returns what to wait for. Middleware does not wait for the confirm: the next job would wait with it.
    def passed(job, seconds)
      entries = []
      through(job) { |j| publish(j, seconds).tap { |entry| entries << entry }.jid }
      entries
    end

    # Returns the jid once all are confirmed; nil where middleware published nothing.
    def answer(entries)
      entries.map(&:wait).last
    end

    def publish(job, seconds)
      jid, message = job.prepare(Wire.now)
      line.publish(jid, message, seconds)
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
