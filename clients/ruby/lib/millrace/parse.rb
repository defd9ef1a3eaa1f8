# frozen_string_literal: true

require_relative 'scan'
require_relative 'wire'

module Millrace
  # Parses the body of a delivery.
  # @private
  module Parse
    NAMES = Wire::JOB_MEMBERS.to_h { |name| [name, %("#{name}").b.freeze] }.freeze

    OPTIONS = { max_nesting: Wire::MAX_NESTING }.freeze

    module_function

    # Returns the members of a job. Raises ArgumentError if the body is not a job. Afterwards `raw`
    # has the encoding BINARY.
    def job(raw)
      raw.force_encoding(Encoding::UTF_8)
      raise ArgumentError, 'it is not UTF-8' unless raw.valid_encoding?

      members = plain?(raw) ? read(raw) : json(raw.b)
      raw.force_encoding(Encoding::BINARY)
      raise ArgumentError, 'it is no JSON object' unless members.is_a?(Hash)

      check_names(raw, members)
      members
    end

    # Parses strict JSON. It reads a lone surrogate as U+FFFD, because a Ruby string cannot contain
    # one.
    def json(raw)
      value = read((Scan.without_lone_surrogates(raw) || raw.dup).force_encoding(Encoding::UTF_8))
      raise ArgumentError, 'it is not JSON' unless Scan.strict?(raw)

      value
    end

    # Parses a JSON object; what is none is empty.
    def object(raw)
      value = json(raw.b)
      value.is_a?(Hash) ? value : {}
    rescue ArgumentError
      {}
    end

    # Returns whether a text has nothing that Ruby reads differently from JSON.
    def plain?(text)
      !text.include?('\\') && !text.include?('/')
    end

    def read(text)
      JSON.parse(text, OPTIONS)
    rescue JSON::ParserError # includes JSON::NestingError
      raise ArgumentError, 'it is not JSON, or nested too deep'
    end

    # Raises ArgumentError if a member of the format occurs twice, has escapes in its name, or has
    # text that is not Unicode.
    def check_names(raw, members)
      return unless ambiguous?(raw, members)

      seen = {}
      Scan.members(raw).each do |member|
        name = member.spelled.include?('\\') ? json(%(["#{member.spelled}"]).b).first : member.spelled
        next unless NAMES.key?(name)
        raise ArgumentError, "it has #{name} with escapes in its name" if name != member.spelled
        raise ArgumentError, "it has #{name} twice" if seen[name]
        raise ArgumentError, "#{name} is not Unicode" if name != 'args' && lone?(raw.byteslice(member.from...member.to))

        seen[name] = true
      end
    end

    # Returns whether names need a closer check. Most jobs do not: they have as many colons as
    # members, and no escapes. Of the others, most have no name of the format twice.
    def ambiguous?(raw, members)
      return true if raw.include?('\\')
      return false if raw.count(':') == members.size

      members.each_key do |name|
        quoted = NAMES[name]
        return true if quoted && raw.index(quoted, raw.index(quoted) + 1)
      end
      false
    end

    def lone?(value)
      value.start_with?('"') && Scan.without_lone_surrogates(value)
    end
  end
end
