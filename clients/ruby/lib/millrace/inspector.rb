# frozen_string_literal: true

require 'erb'
require 'json'
require 'net/http'
require 'uri'

module Millrace
  # Finds jobs and acts on them, over the REST API of a sidecar. It is safe to use from several
  # threads.
  #
  # Every method may raise:
  #
  # - {ApiError}: the sidecar refuses the request
  # - {NotFound}: there is no such job or queue
  # - {Unreachable}: no sidecar was reached
  # - {Unconfirmed}: there was no answer. The action may have been done, and it is safe to repeat it
  #
  # @example
  #   inspector = Millrace::Inspector.new('http://guest:guest@127.0.0.1:15680')
  #   inspector.delete(jid)
  class Inspector
    # The sidecar that is used if none is given.
    DEFAULT_URL = 'http://guest:guest@127.0.0.1:15680'
    # How many queues or jobs an answer has at most.
    PAGE = 500
    SETS = %w[scheduled-jobs retries dead-jobs gated-jobs].freeze
    private_constant :PAGE, :SETS

    # A job that waits outside of its queue. `set` is `scheduled-jobs`, `retries`, `dead-jobs` or
    # `gated-jobs`. `at` is when the job is due, or when it died. `attempt` counts the failed
    # attempts. `record` is the published record, with the job as its member `job`.
    Entry = Struct.new(:jid, :set, :at, :job_class, :queue, :attempt, :record, keyword_init: true)
    # An attempt that a worker reported. `status` is `success`, `failed`, `dead`, `discarded` or
    # `expired`.
    Run = Struct.new(:at, :job_class, :queue, :status, :attempt, :error_class, keyword_init: true)
    # A job: where it waits, and how its attempts ended, the newest first. A job without an entry is
    # in its queue, runs, or has ended.
    Found = Struct.new(:jid, :entries, :runs, keyword_init: true) # rubocop:disable Lint/StructNewOverride
    # How full a queue is. `ready` counts jobs that wait in it, and `running` jobs that workers have
    # (nil if the broker does not report it). `scheduled`, `retries` and `dead` count jobs of this
    # queue that wait elsewhere.
    QueueSize = Struct.new(:name, :state, :ready, :running, :scheduled, :retries, :dead, keyword_init: true)

    # @param url [String] `http://user:password@host:port`, or `https://`; the user is one of the
    #   broker's
    # @param token [String, nil] replaces user and password, if the sidecar has tokens
    # @param timeout [Numeric] how many seconds a call may take
    # @param ca_file [String, nil] for `https://`: the certificates to trust, in place of the
    #   system's
    def initialize(url = DEFAULT_URL, token: nil, timeout: 10, ca_file: nil)
      @uri = URI.parse(url)
      raise ArgumentError, "the sidecar's URL must be http://user:password@host:port, or https://" unless @uri.is_a?(URI::HTTP) && @uri.host

      @token = token
      @timeout = timeout
      @ca_file = ca_file
    rescue URI::InvalidURIError
      raise ArgumentError, "the sidecar's URL must be http://user:password@host:port, or https://"
    end

    # Finds a job.
    # @return [Found]
    # @raise [NotFound] the job is not known
    def find(jid)
      answer = call(Net::HTTP::Get, 'jobs', jid)
      Found.new(jid: jid, entries: answer['entries'].map { |item| entry(item, jid, item['millrace']['set']) },
                runs: answer.fetch('runs', []).map { |one| run(one) })
    end

    # Finds the jobs with a tag that wait outside of their queues: those that are scheduled, wait for
    # a retry, are dead, or wait until their queue exists. It asks the sidecar for some at a time. A
    # job that moves meanwhile may come twice. Records over 64 KiB are not searched.
    # @yieldparam entry [Entry]
    # @return [Enumerator<Entry>, nil] an enumerator if there is no block
    def find_by_tag(tag, &block)
      return enum_for(:find_by_tag, tag) unless block

      SETS.each { |set| each_in(set, tag, &block) }
      nil
    end

    # Deletes a job that is scheduled, waits for a retry, or is dead.
    # @raise [NotFound] the job is none of these
    def delete(jid)
      call(Net::HTTP::Delete, 'jobs', jid)
      nil
    end

    # Asks the worker that runs a job to cancel it. {Job#cancelled?} of that job then returns true.
    # @raise [NotFound] no worker reports that it runs the job
    def cancel(jid)
      call(Net::HTTP::Post, 'jobs', jid, 'cancel')
      nil
    end

    # Puts a job that waits for a retry, or is dead, into its queue now.
    # @raise [NotFound] the job is neither
    def retry(jid)
      call(Net::HTTP::Post, set_of(jid, 'retries', 'dead-jobs'), jid, 'retry')
      nil
    end

    # Sets when a scheduled job, or a retry, is due.
    # @param time [Time, Numeric] or seconds since the epoch
    # @raise [NotFound] the job is neither
    def reschedule(jid, time)
      call(Net::HTTP::Patch, set_of(jid, 'scheduled-jobs', 'retries'), jid, body: { at: time.to_f })
      nil
    end

    # Returns how full a queue is.
    # @return [QueueSize]
    # @raise [NotFound] there is no such queue
    def queue(name)
      size(call(Net::HTTP::Get, 'job-queues', name))
    end

    # Returns how full all queues are.
    # @return [Array<QueueSize>] by name
    def queues
      all = []
      loop do
        page = call(Net::HTTP::Get, 'job-queues', query: "?limit=#{PAGE}&offset=#{all.size}")
        all.concat(page.map { |one| size(one) })
        return all if page.size < PAGE
      end
    end

    # Does not show the password.
    def inspect
      "#<#{self.class} #{@uri.scheme}://#{@uri.host}:#{@uri.port}>"
    end

    private

    def each_in(set, tag)
      query = { tag: tag, page: 1, page_size: PAGE }
      loop do
        page = call(Net::HTTP::Get, set, query: "?#{URI.encode_www_form(query)}")
        page['items'].each { |item| yield entry(item, item['jid'] || item.dig('job', 'jid'), set) }
        return unless page['next']

        query[:next] = page['next']
      end
    end

    def set_of(jid, *sets)
      found = find(jid).entries.find { |entry| sets.include?(entry.set) }
      raise NotFound.new(404, 'not_found', "job #{jid} is not in #{sets.join(' or ')}") unless found

      found.set
    end

    def call(method, *path, body: nil, query: '')
      request = method.new("#{@uri.path.chomp('/')}/api/#{path.map { |part| ERB::Util.url_encode(part) }.join('/')}#{query}")
      authorize(request)
      if body
        request['Content-Type'] = 'application/json'
        request.body = JSON.generate(body)
      end
      answer = request(request)
      raise refusal(answer) unless answer.is_a?(Net::HTTPSuccess)

      answer.body.to_s.empty? ? nil : JSON.parse(answer.body)
    end

    def authorize(request)
      if @token
        request['Authorization'] = "Bearer #{@token}"
      else
        user, password = [@uri.user, @uri.password].map { |text| URI.decode_www_form_component(text.to_s.gsub('+', '%2B')) }
        request.basic_auth(user, password)
      end
    end

    def request(request)
      http = Net::HTTP.new(@uri.host, @uri.port)
      http.use_ssl = @uri.scheme == 'https'
      http.ca_file = @ca_file if @ca_file
      http.open_timeout = http.read_timeout = http.write_timeout = @timeout
      http.max_retries = 0
      begin
        http.start
      rescue SystemCallError, SocketError, IOError, ::Timeout::Error, OpenSSL::SSL::SSLError => e
        raise Unreachable, "no sidecar at #{@uri.host}:#{@uri.port}: #{e.message}"
      end
      exchange(http, request)
    end

    def exchange(http, request)
      http.request(request)
    rescue SystemCallError, IOError, ::Timeout::Error, OpenSSL::SSL::SSLError, Net::HTTPBadResponse => e
      raise Unconfirmed, "no answer from the sidecar at #{@uri.host}:#{@uri.port}: #{e.message}"
    ensure
      http.finish
    end

    def refusal(answer)
      said = JSON.parse(answer.body.to_s)
      return Unconfirmed.new(said['reason']) if answer.code == '504'

      (answer.code == '404' ? NotFound : ApiError).new(answer.code.to_i, said.fetch('error'), said['reason'])
    rescue JSON::ParserError, KeyError, NoMethodError, TypeError
      ApiError.new(answer.code.to_i, 'unknown', "this is no answer of a sidecar: #{answer.message}")
    end

    def entry(item, jid, set)
      about = item['millrace']
      Entry.new(jid: jid, set: set, at: Time.at(about['at']), job_class: about['class'], queue: about['queue'],
                attempt: about['attempt'], record: item.except('millrace'))
    end

    def run(one)
      Run.new(at: Time.at(one['at']), job_class: one['class'], queue: one['queue'], status: one['status'], attempt: one['attempt'],
              error_class: one['error_class'])
    end

    def size(one)
      QueueSize.new(name: one['name'], state: one['state'], ready: one['ready'], running: one['unacked'], scheduled: one['scheduled'],
                    retries: one['retries'], dead: one['dead'])
    end
  end
end
