# frozen_string_literal: true

require 'securerandom'

module Millrace
  # Receives commands to this worker, and asks the leader for its state.
  # @private
  module Control
    module_function

    # Declares the exclusive queue of this process, follows its commands, and returns the queue's
    # name. The queue vanishes with the connection.
    def listen(session)
      channel = session.connection.channel
      queue = channel.declare('', exclusive: true)
      channel.consume(queue, session.next_tag, ->(_, _, _, body) { obey(session.worker, body) }, no_ack: true)
      bind(session, queue)
      queue
    end

    # Binds the queue, on a channel of its own, which closes if the exchange does not exist.
    def bind(session, queue)
      binding = session.connection.channel
      binding.bind(queue, Wire::CONTROL)
    rescue Connection::Lost => e
      raise if session.connection.lost

      session.worker.log.warn("commands do not reach this worker: #{e.message}")
    ensure
      binding&.close
    end

    # Carries out a command, if it is valid and addressed to this worker. It must not wait.
    def obey(worker, body)
      command = Parse.object(body)
      return unless ['*', worker.identity].include?(command['identity'])

      worker.log.info("command #{command.values_at('op', 'queue', 'jid').compact.join(' ')}")
      case command['op']
      when 'quiet' then worker.quiet
      when 'stop' then worker.stop
      when 'cancel' then worker.settler.cancel(command['jid'])
      when 'pause', 'resume' then pause(worker, command)
      end
    end

    # Pauses or resumes the queue that the command names, if any.
    def pause(worker, command)
      queue = command['queue']
      worker.public_send(command['op'], queue) if queue.is_a?(String) && !queue.empty?
    end

    # Asks the leader which queues are paused, and which jobs to claim. Without an answer, nothing
    # changes.
    def learn_state(session)
      command = { 'id' => SecureRandom.hex(16), 'command' => 'state' }
      worker = session.worker
      answer = Leader.ask(session.connection, command, Claims::ANSWER_TIME, bell: worker.bell, tag: session.next_tag) { worker.stopping? }
      return unless answer['status'] == 200

      worker.paused = Array(answer['paused']).grep(String)
      session.claims.below = answer['claim_below'] if answer['claim_below'].is_a?(Integer)
    rescue Publisher::Returned
      nil
    rescue Connection::Lost
      raise if session.connection.lost
    end
  end
end
