# frozen_string_literal: true

module Millrace
  # SIGTSTP makes a worker quiet, SIGTERM and SIGINT stop it. A trap must not wait for a lock, so it
  # only passes the signal to a thread.
  # @private
  class Signals
    ACTIONS = { 'TSTP' => :quiet, 'TERM' => :stop, 'INT' => :stop }.freeze

    def initialize(worker)
      signals = Thread::Queue.new
      @signals = signals
      @before = ACTIONS.to_h { |name, action| [name, Signal.trap(name) { signals << action }] }
      @thread = Thread.new do
        while (action = signals.pop)
          worker.public_send(action)
        end
      end
    end

    # Restores the previous traps.
    def restore
      @before.each { |name, action| Signal.trap(name, action || 'DEFAULT') }
      @signals << nil
      @thread.join
    end
  end
end
