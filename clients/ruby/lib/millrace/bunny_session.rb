# frozen_string_literal: true

require 'bunny'

module Millrace
  # Bunny's session, which outlives a message with headers that bunny cannot read, such as unsigned numbers: it comes without properties.
  # In bunny's own it ends the connection, and the broker would deliver it again, for ever.
  # @private
  class BunnySession < Bunny::Session
    # What stands for a header that cannot be read.
    Unreadable = Struct.new(:body_size) do
      # @private
      def decode_payload
        {}
      end
    end

    # Reads headers where somebody can still make something of those that cannot be read.
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

    # Connects to one address of a host, for bunny would take any. TLS checks the host's name.
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
