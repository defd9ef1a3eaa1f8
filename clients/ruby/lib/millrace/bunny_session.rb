# frozen_string_literal: true

require 'bunny'

module Millrace
  # Bunny's session, changed to accept messages with headers that bunny cannot read, such as
  # unsigned numbers. Such a message comes without properties. An unchanged session closes the
  # connection, and then the broker delivers the message again, in an endless loop.
  # @private
  class BunnySession < Bunny::Session
    # The replacement for a header that cannot be read.
    Unreadable = Struct.new(:body_size) do
      # @private
      def decode_payload
        {}
      end
    end

    # Replaces headers that cannot be read, before bunny fails at them.
    module Lenient
      # @private
      def read_next_frame(*)
        frame = super
        frame.is_a?(AMQ::Protocol::HeaderFrame) ? readable(frame) : frame
      end

      private

      def readable(header)
        header.tap(&:decode_payload)
      rescue StandardError
        Unreadable.new(header.payload.byteslice(4, 8).unpack1('Q>'))
      end
    end

    # Connects to one given address of a host; bunny would use any of them. TLS still checks the
    # host's name.
    module AtAddress
      # @private
      def initialize_socket
        name = @host
        @host = @opts[:address]
        super
      ensure
        @host = name
      end
    end

    protected

    # @private
    def initialize_transport
      super.extend(Lenient, AtAddress)
    end
  end
end
