# frozen_string_literal: true

require 'bunny'
require 'fileutils'
require 'open3'
require 'securerandom'
require 'socket'
require 'tmpdir'

# A RabbitMQ node for the tests. It starts with the first test that needs it, and stops after the
# last.
module PrivateBroker
  SCRIPTS = [*ENV.fetch('MILLRACE_TEST_RABBITMQ', nil), '/usr/lib/rabbitmq/bin', '/opt/rabbitmq/sbin'].freeze
  CONFIG = <<~TEXT
    listeners.tcp.1 = 127.0.0.1:%<amqp>d
    listeners.ssl.1 = 127.0.0.1:%<amqps>d
    ssl_options.cacertfile = %<folder>s/ca.pem
    ssl_options.certfile = %<folder>s/server.pem
    ssl_options.keyfile = %<folder>s/server.key
    ssl_options.verify = verify_peer
    ssl_options.fail_if_no_peer_cert = true
    disk_free_limit.absolute = 10MB
    log.console = true
    log.console.level = error
    log.file = false
  TEXT

  class << self
    # The port for TLS, which requires a client certificate, and the folder that has ca.pem,
    # client.pem and client.key.
    attr_reader :tls_port, :folder

    # Returns the node's AMQP port, or nil if no RabbitMQ is installed.
    def port
      server = SCRIPTS.map { |folder| File.join(folder, 'rabbitmq-server') }.find { |path| File.executable?(path) }
      @port ||= start(server) if server
    end

    # Runs rabbitmqctl.
    def ctl(*arguments)
      output, status = Open3.capture2e(@env, @ctl, *arguments, unsetenv_others: true, chdir: @folder)
      raise "rabbitmqctl #{arguments.first}: #{output}" unless status.success?
    end

    private

    def start(server)
      folder = @folder = Dir.mktmpdir('millrace-ruby-broker-')
      amqp, dist, epmd, @tls_port = free_ports(4)
      env = @env = environment(folder, dist, epmd)
      @ctl = File.join(File.dirname(server), 'rabbitmqctl')
      certify(folder)
      write(folder, amqp)
      run(folder, env, 'epmd', '-port', epmd.to_s, '-address', '127.0.0.1')
      node = run(folder, env, server)
      Minitest.after_run { FileUtils.rm_rf(folder) }
      wait_for(amqp, node, folder)
      amqp
    end

    # Returns ports below the range that the kernel uses for outgoing connections.
    def free_ports(count)
      loop do
        first = Random.new.rand(14_000..19_900)
        ports = (first...first + count).to_a
        return ports if free?(ports)
      end
    end

    def free?(ports)
      servers = []
      ports.each { |port| servers << TCPServer.new('127.0.0.1', port) }
      true
    rescue Errno::EADDRINUSE
      false
    ensure
      servers.each(&:close)
    end

    def environment(folder, dist, epmd)
      { 'PATH' => ENV.fetch('PATH'), 'LANG' => 'C.UTF-8', 'HOME' => folder, 'ERL_EPMD_PORT' => epmd.to_s, 'ERL_EPMD_ADDRESS' => '127.0.0.1',
        'ERL_INETRC' => "#{folder}/inetrc", 'ERL_FLAGS' => '-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}',
        'RABBITMQ_NODENAME' => 'millrace-ruby@localhost', 'RABBITMQ_CONF_ENV_FILE' => "#{folder}/none",
        'RABBITMQ_CONFIG_FILE' => "#{folder}/rabbitmq.conf", 'RABBITMQ_ADVANCED_CONFIG_FILE' => "#{folder}/none.config",
        'RABBITMQ_ENABLED_PLUGINS_FILE' => "#{folder}/enabled_plugins", 'RABBITMQ_MNESIA_BASE' => "#{folder}/data",
        'RABBITMQ_LOG_BASE' => "#{folder}/log", 'RABBITMQ_DIST_PORT' => dist.to_s,
        'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS' => '+S 1:1 +B i +sbwt none +sbwtdcpu none +sbwtdio none',
        # The script becomes the node, so the tests can end its process.
        'RUNNING_UNDER_SYSTEMD' => 'true',
        'ERL_CRASH_DUMP' => '/dev/null' }
    end

    def write(folder, amqp)
      { 'rabbitmq.conf' => format(CONFIG, amqp: amqp, amqps: @tls_port, folder: folder), 'enabled_plugins' => "[].\n",
        'inetrc' => %({host, {127,0,0,1}, ["localhost", "#{Socket.gethostname}"]}.\n{lookup, [file, native]}.\n),
        '.erlang.cookie' => SecureRandom.hex }.each { |name, text| File.write(File.join(folder, name), text) }
      File.chmod(0o400, File.join(folder, '.erlang.cookie'))
    end

    # Writes a CA, and certificates signed by it for the broker and for a client.
    def certify(folder)
      request(folder, 'ca', '-x509', '-days', '2', '-out', 'ca.pem')
      File.write(File.join(folder, 'names'), "subjectAltName=DNS:localhost\n")
      %w[server client].each do |name|
        request(folder, name, '-out', "#{name}.csr")
        openssl(folder, 'x509', '-req', '-in', "#{name}.csr", '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2',
                '-extfile', 'names', '-out', "#{name}.pem")
      end
    end

    def request(folder, name, *arguments)
      openssl(folder, 'req', *arguments, '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', "#{name}.key",
              '-subj', "/CN=millrace test #{name}")
    end

    def openssl(folder, *arguments)
      output, status = Open3.capture2e('openssl', *arguments, chdir: folder)
      raise "openssl #{arguments.first}: #{output}" unless status.success?
    end

    # Runs a program until the tests end.
    def run(folder, env, *command)
      log = File.join(folder, 'output.log')
      pid = Process.spawn(env, *command, unsetenv_others: true, chdir: folder, in: File::NULL, out: [log, 'a'], err: [log, 'a'])
      Minitest.after_run do
        Process.kill('KILL', pid)
        Process.wait(pid)
      rescue SystemCallError
        nil # it has ended
      end
      pid
    end

    def wait_for(port, node, folder)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 120
      begin
        TCPSocket.new('127.0.0.1', port).close
      rescue SystemCallError
        late = Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
        raise "the node did not start:\n#{File.read("#{folder}/output.log")}" if late || Process.wait(node, Process::WNOHANG)

        sleep 0.1
        retry
      end
    end
  end

  # A network between a program and the node. It can hold answers back.
  class Network
    # `returns` is how often the node has returned messages.
    attr_reader :port, :returns

    def initialize(broker)
      @broker = broker
      @returns = 0
      @server = TCPServer.new('127.0.0.1', 0)
      @port = @server.addr[1]
      @mutex = Mutex.new
      @flows = ConditionVariable.new
      @threads = [Thread.new { loop { connect(@server.accept) } }]
    end

    # Holds back all answers of the node until the block ends.
    def without_answers
      @held = true
      yield
    ensure
      @mutex.synchronize do
        @held = false
        @flows.broadcast
      end
    end

    def close
      @threads.each(&:kill)
      @server.close
    end

    private

    def connect(client)
      node = TCPSocket.new('127.0.0.1', @broker)
      @threads << Thread.new { copy(client, node) } << Thread.new { copy(node, client, answers: true) }
    end

    def copy(from, to, answers: false)
      loop do
        bytes = from.readpartial(65_536)
        @mutex.synchronize { @flows.wait(@mutex) while answers && @held }
        @returns += 1 if answers && bytes.include?('NO_ROUTE')
        to.write(bytes)
      end
    rescue IOError, SystemCallError
      [from, to].each(&:close)
    end
  end
end
