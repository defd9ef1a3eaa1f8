# frozen_string_literal: true

require_relative 'scan'
require_relative 'wire'

module Millrace
  # Reads the body of a delivery.
  # @private
  module Parse
    NAMES = Wire::JOB_MEMBERS.to_h { |name| [name, %("#{name}").b.freeze] }.freeze

    OPTIONS = { max_nesting: Wire::MAX_NESTING }.freeze

    module_function

    # The members of a job, or ArgumentError: no worker can decode it. The bytes are looked at as what they are when it is done.
    def job(raw)
      raw.force_encoding(Encoding::UTF_8)
      raise ArgumentError, 'it is not UTF-8' unless raw.valid_encoding?

      members = plain?(raw) ? read(raw) : json(raw.b)
      raw.force_encoding(Encoding::BINARY)
      raise ArgumentError, 'it is no JSON object' unless members.is_a?(Hash)

      check_names(raw, members)
      members
    end

    # Reads JSON, and nothing but JSON. A lone surrogate, which Ruby cannot have in a text, is read as U+FFFD.
    def json(raw)
      value = read((Scan.without_lone_surrogates(raw) || raw.dup).force_encoding(Encoding::UTF_8))
      raise ArgumentError, 'it is not JSON' unless Scan.strict?(raw)

      value
    end

    # Tells whether a text has nothing that Ruby reads otherwise than JSON has it.
    def plain?(text)
      !text.include?('\\') && !text.include?('/')
    end

    def read(text)
      JSON.parse(text, OPTIONS)
    rescue JSON::ParserError # a JSON::NestingError is one
      raise ArgumentError, 'it is not JSON, or nested too deep'
    end

    # Raises ArgumentError where a member of the format stands twice, has escapes in its name, or text that is not Unicode.
    def check_names(raw, members)
      return unless doubtful?(raw, members)

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

    # Most jobs have as many colons as members, and no escapes. Of the others, most have no name of the format twice anywhere.
    def doubtful?(raw, members)
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
