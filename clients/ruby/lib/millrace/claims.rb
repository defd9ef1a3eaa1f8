# frozen_string_literal: true

module Millrace
  # Asks the leader whether limited jobs that may have begun before may run. It belongs to one
  # connection.
  # @private
  class Claims
    # How many seconds the leader has to answer.
    ANSWER_TIME = 2
    ANSWERS = %w[run drop].freeze

    # Jobs of earlier epochs may have begun before this connection was made. nil: any may have.
    attr_writer :below

    def initialize(session)
      @session = session
      @worker = session.worker
    end

    # Returns whether the job of a delivery may have begun before.
    def needed?(task)
      return false unless task.slot

      headers = task.headers
      epoch = headers['millrace-epoch']
      task.arrival.redelivered || headers.key?('millrace-claim') || headers['millrace-op'] == 'refired' ||
        @below.nil? || !epoch.is_a?(Integer) || epoch < @below
    end

    # Asks until the leader answers, and returns `run` or `drop`. Returns nil if the worker stops or
    # has lost the delivery. Called in a thread of a lane.
    def claim(task)
      pauses = Pauses.new
      loop do
        answer = ask(task)
        return answer if ANSWERS.include?(answer)
        return unless task.pause(pauses.next)
      end
    end

    private

    def ask(task)
      command = { 'command' => 'claim', 'slot' => task.slot, 'process' => @worker.identity }
      answer = Leader.ask(@session.connection, command, ANSWER_TIME, bell: @worker.bell, tag: @session.next_tag) do
        @worker.stopping? || task.attachment.lost?
      end
      answer['claim'] if answer['status'] == 200
    rescue Publisher::Returned, Connection::Lost
      nil
    end
  end
end
