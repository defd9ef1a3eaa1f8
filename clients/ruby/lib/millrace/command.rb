# frozen_string_literal: true

require 'optparse'
require 'millrace'

module Millrace
  # The command `millrace-worker`: runs the jobs of the classes that a program loads.
  # @private
  class Command
    BANNER = <<~TEXT
      Usage: millrace-worker [options] file …

      Loads the files, each of which has classes that include Millrace::Handler, and runs their jobs until SIGTERM or SIGINT.
      Millrace.configure_worker in one of them adds hooks and middleware, and Millrace.worker_options= sets lanes and other options.
    TEXT

    # An option that is wrong, or two handlers for one class.
    class Mistake < StandardError; end

    # Runs the command, and returns its exit code. An error of the program that it loads is raised.
    def self.run(args)
      @running = true
      new.run(args)
    rescue OptionParser::ParseError, Mistake, Unreachable => e
      warn "millrace-worker: #{e.message}"
      1
    ensure
      @running = false
    end

    # Returns whether this process is the command.
    def self.running?
      @running || false
    end

    def initialize
      @queues = {}
      @options = {}
    end

    def run(args)
      files = ours { parser.parse(args) }
      return 0 if @said

      files.each { |file| require File.expand_path(file) }
      worker = ours { Worker.new(@url || Millrace.url, **Millrace.worker_options, **@options, **queues) }
      Millrace.configure(worker)
      ours { worker.run(signals: true) }
      0
    end

    private

    # Calls the block. An ArgumentError is then one of the command, and needs no stack.
    def ours
      yield
    rescue ArgumentError => e
      raise Mistake, e.message
    end

    # Either all queues have a weight, or none has one.
    def queues
      return {} if @queues.empty?

      { queues: @queues.values.any? ? @queues.transform_values { |weight| weight || 1 } : @queues.keys }
    end

    def parser
      OptionParser.new(BANNER) do |o|
        o.on('-q', '--queue NAME[,WEIGHT]', 'a queue; the first given is served first, or each by its weight') { |text| queue(text) }
        o.on('-c', '--concurrency N', Integer, "how many jobs run at once (#{Lane::CONCURRENCY})") { |n| @options[:concurrency] = n }
        o.on('-t', '--stop-timeout SECONDS', Float, 'how long jobs may go on after a stop (25)') { |s| @options[:stop_timeout] = s }
        o.on('-u', '--url URL', "the broker (MILLRACE_AMQP_URL, or #{DEFAULT_URL})") { |url| @url = url }
        o.on('--tag TAG', 'part of the identity') { |tag| @options[:tag] = tag }
        o.on('--app-version VERSION', "your program's, shown with the worker") { |version| @options[:version] = version }
        o.on('-v', '--version', 'of the library') { say(VERSION) }
        o.on('-h', '--help') { say(o) }
      end
    end

    def say(text)
      @said = true
      puts text
    end

    def queue(text)
      name, comma, weight = text.rpartition(',')
      comma.empty? ? @queues[text] = nil : @queues[name] = Integer(weight)
    end
  end
end
