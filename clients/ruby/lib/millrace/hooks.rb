# frozen_string_literal: true

module Millrace
  # What a program wants to be told. Hooks run one after the other in a thread of their own, never where something waits for them.
  # @private
  class Hooks
    EVENTS = %i[startup quiet shutdown death].freeze

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

    # Calls the hooks of an event, and returns when they have returned, and all before them.
    def call_and_wait(event)
      call(event)
      close
      start
    end

    def start
      @thread = Thread.new do
        while (event, args = @calls.pop)
          @hooks[event].each { |hook| run(event, hook, args) }
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
      @log.error("hook #{event} failed: #{Record.error_class(e)}: #{Record.message(e)}")
    end
  end
end
