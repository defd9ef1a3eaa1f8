# frozen_string_literal: true

require_relative 'scan'
require_relative 'wire'

module Millrace
  # Reads the body of a delivery.
  # @private
  module Parse
    NAMES = Wire::JOB_MEMBERS.to_h { |name| [name, %("#{name}").b.freeze] }.freeze

    module_function

    # The members of a job, or ArgumentError: no worker can decode it.
    def job(raw)
      raise ArgumentError, 'it is not UTF-8' unless raw.dup.force_encoding(Encoding::UTF_8).valid_encoding?

      members = json(raw)
      raise ArgumentError, 'it is no JSON object' unless members.is_a?(Hash)

      check_names(raw, members)
      members
    end

    # Reads JSON, and nothing but JSON. A lone surrogate, which Ruby cannot have in a text, is read as U+FFFD.
    def json(raw)
      text = Scan.without_lone_surrogates(raw)
      value = JSON.parse((text || raw).dup.force_encoding(Encoding::UTF_8), max_nesting: Wire::MAX_NESTING, create_additions: false)
      raise ArgumentError, 'it is not JSON' unless Scan.strict?(raw)

      value
    rescue JSON::ParserError # a JSON::NestingError is one
      raise ArgumentError, 'it is not JSON, or nested too deep'
    end

    # Raises ArgumentError where a member of the format stands twice, has escapes in its name, or text that is not Unicode.
    def check_names(raw, members)
      return unless raw.include?('\\') || twice?(raw, members)

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

    def twice?(raw, members)
      members.each_key.any? do |name|
        quoted = NAMES[name]
        quoted && raw.index(quoted, raw.index(quoted) + 1)
      end
    end

    def lone?(value)
      value.start_with?('"') && Scan.without_lone_surrogates(value)
    end
  end
end
