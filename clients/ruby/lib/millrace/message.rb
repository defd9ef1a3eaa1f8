# frozen_string_literal: true

module Millrace
  # A delayed message: its checks and its form in a job.
  # @private
  module Message
    CLASS = 'millrace.Message'
    QUEUE = 'millrace.messages'
    # How deep headers may be nested.
    MAX_DEPTH = 100
    # Properties that are texts.
    TEXTS = %i[content_type content_encoding correlation_id reply_to message_id type app_id].freeze

    module_function

    # Returns the job that delivers a message. Raises Invalid if the message breaks a rule.
    def job(at, exchange, routing_key, body, properties, options)
      raise ArgumentError, "a message has no option queue: it waits in #{QUEUE}" if options.key?(:queue)
      raise ArgumentError, 'limits count no messages: no worker reports their end' if options.key?(:limited) || options.key?(:limit_key)
      raise ArgumentError, 'a message cannot be unique' if options.key?(:unique)
      raise ArgumentError, 'properties must be a hash' unless properties.is_a?(Hash)

      message = { 'exchange' => short('exchange', exchange), 'routing_key' => short('routing_key', routing_key) }.merge(content(body))
      message['properties'] = properties.to_h { |name, value| [name.to_s, property(name.to_sym, value)] } unless properties.empty?
      NewJob.new(CLASS, [message], at: at, queue: QUEUE, **options)
    rescue ArgumentError, TypeError => e
      raise Invalid, "message to #{exchange.inspect[0, 100]}: #{e.message}"
    end

    # Returns the body's bytes as the record has them.
    def content(body)
      raise ArgumentError, "the body must be a String, not #{body.class}" unless body.is_a?(String)

      text = body.dup.force_encoding(Encoding::UTF_8)
      text.valid_encoding? ? { 'body' => text } : { 'body_base64' => [body].pack('m0') }
    end

    def property(name, value)
      case name
      when *TEXTS then short(name, value)
      when :expiration then expiration(value)
      when :delivery_mode then Wire.check_number(name, value, 1, 2)
      when :priority then Wire.check_number(name, value, 0, 255)
      when :timestamp then timestamp(value)
      when :headers then headers(value)
      else raise ArgumentError, "there is no property #{name}"
      end
    end

    def short(name, value)
      raise ArgumentError, "#{name} must be a text" unless value.is_a?(String) && Wire.unicode?(value)

      text = value.encode(Encoding::UTF_8)
      raise ArgumentError, "#{name} is longer than #{Wire::MAX_SHORT} bytes" if text.bytesize > Wire::MAX_SHORT

      text
    end

    def expiration(value)
      return value if value.is_a?(String) && value.match?(/\A\d{1,255}\z/)

      raise ArgumentError, "expiration must be a text of milliseconds, such as '60000'"
    end

    def timestamp(value)
      time = value.is_a?(Time) || (value.is_a?(Numeric) && value.to_f.finite?)
      raise ArgumentError, 'timestamp must be a time, not before 1970' unless time && value.to_i.between?(0, (1 << 63) - 1)

      value.to_i
    end

    def headers(value)
      raise ArgumentError, 'headers must be a hash' unless value.is_a?(Hash)

      header(value, 0)
    end

    # Returns the value of a header with texts as names. Raises ArgumentError if JSON does not have
    # exactly this value.
    def header(value, depth)
      raise ArgumentError, "headers are nested deeper than #{MAX_DEPTH}" if depth > MAX_DEPTH

      case value
      when Hash then value.to_h { |name, v| [short('the name of a header', name.is_a?(Symbol) ? name.name : name), header(v, depth + 1)] }
      when Array then value.map { |v| header(v, depth + 1) }
      when Integer
        raise ArgumentError, 'a header has an integer that needs more than 64 bits' if value.bit_length > 63

        value
      else
        Plain.check(value)
        value
      end
    end
  end
end
