# frozen_string_literal: true

module Millrace
  # Enqueues jobs. It is safe to use from several threads, connects when it has to, and again when a connection is lost. A fork is
  # survived: the child connects for itself.
  class Client
    # @param url [String, Array<String>] `amqp://user:password@host:port/vhost`, or `amqps://`; of a cluster with several hosts,
    #   `amqp://user:password@a,b/vhost`, or a list of URLs
    # @param timeout [Numeric] how many seconds a publish may take
    def initialize(url, timeout: 30)
      @hosts = Hosts.new(url)
      @timeout = timeout
      @middleware = []
      @mutex = Mutex.new
      @closed = false
    end

    # Makes a client, and closes it when the block has ended.
    # @yieldparam client [Client]
    def self.open(url, **options)
      client = new(url, **options)
      yield client
    ensure
      client&.close
    end

    # Wraps each publish. The first added is the outermost. It may change the job, or not call the second parameter: then nothing is
    # published and the jid is nil.
    # @yieldparam job [NewJob]
    # @yieldparam next_one [Proc] publishes the job and gives its jid
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
      answers = jobs.map { |job| attempt { passed(job, seconds) } }
      results = answers.map { |answer| answer.is_a?(Error) ? answer : attempt { answer.call } }
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
      through(job) { |j| publish(j, deadline || @timeout).call }
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

    # Sends one of many. With middleware each is awaited inside, for that is where its jid and error are expected.
    def passed(job, seconds)
      return publish(job, seconds) if @middleware.empty?

      jid = push(job, deadline: seconds)
      -> { jid }
    end

    def publish(job, seconds)
      jid, message = job.prepare(Wire.now)
      entry = line.publish(message, seconds)
      lambda do
        entry.wait
        jid
      end
    end

    def attempt
      yield
    rescue Error => e
      e
    end

    def line
      @mutex.synchronize do
        raise Closed, 'the client was closed' if @closed

        @line = Line.new(@hosts) unless @line && @line.pid == ::Process.pid
        @line
      end
    end
  end
end
