# frozen_string_literal: true

module Millrace
  # A program's functions for events. Hooks of :failure run in the thread of the job, before its
  # outcome is published. All other hooks run one after the other in a thread of their own, so that
  # nothing waits for them.
  # @private
  class Hooks
    EVENTS = %i[startup quiet shutdown failure death].freeze

    def initialize(log)
      @log = log
      @hooks = EVENTS.to_h { |event| [event, []] }
      @calls = Thread::Queue.new
    end

    def add(event, hook)
      raise ArgumentError, "there is no hook #{event}: there are #{EVENTS.join(', ')}" unless EVENTS.include?(event)

      @hooks[event] << hook
    end

    # Calls the hooks of an event.
    def call(event, *args)
      return if @hooks[event].empty?

      @calls << [event, args]
    end

    # Calls the hooks of an event in the calling thread.
    def call_here(event, *args)
      @hooks[event].each { |hook| run(event, hook, args) }
    end

    # Calls the hooks of an event, and returns when they and all earlier ones have returned.
    def call_and_wait(event)
      call(event)
      close
      start
    end

    def start
      @thread = Thread.new do
        while (event, args = @calls.pop)
          call_here(event, *args)
        end
      end
    end

    # Waits for hooks that still run.
    def close
      @calls << nil
      @thread&.join
    end

    private

    def run(event, hook, args)
      hook.call(*args)
    rescue Exception => e # rubocop:disable Lint/RescueException -- it is not to end anything
      Report.hook_failed(@log, event, e)
    end
  end
end
