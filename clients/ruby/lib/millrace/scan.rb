# frozen_string_literal: true

require 'strscan'

module Millrace
  # Finds parts of JSON without changing it. The bytes must have passed Ruby's parser, which accepts
  # more than JSON.
  # @private
  module Scan
    STRING = %r{"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u\h{4}))*+"}n
    SPACE = /[ \t\r\n]*/n
    # The content of an object or array up to the next bracket. It skips strings.
    INSIDE = /(?:[^"\[\]{}]++|#{STRING})*+/n
    SCALAR = /#{STRING}|[^\s,"\[\]{}]+/n
    # An escape of a lone surrogate. The first alternatives skip escaped backslashes and valid
    # pairs.
    LONE = /\\\\|\\u[dD][89abAB]\h\h\\u[dD][c-fC-F]\h\h|(\\u[dD][89a-fA-F]\h\h)/n

    # A member of an object: the spelling of its name, and where its value begins and ends.
    Member = Struct.new(:spelled, :from, :to)

    module_function

    # Returns whether a text is strict JSON. Ruby also accepts comments, and escapes that JSON does
    # not have.
    def strict?(raw)
      return true unless raw.include?('\\') || raw.include?('/')

      !raw.gsub(STRING, '').match?(%r{["\\/]}n)
    end

    # Replaces lone surrogates, which Ruby does not read. Returns nil if there are none.
    def without_lone_surrogates(raw)
      return unless raw.include?('\\') && raw.match?(/\\u[dD][89a-fA-F]/n)

      found = false
      text = raw.gsub(LONE) do
        lone = !Regexp.last_match(1).nil?
        found ||= lone
        lone ? '\ufffd' : Regexp.last_match(0)
      end
      text if found
    end

    # Returns the members of the outermost object.
    def members(raw)
      found = []
      s = StringScanner.new(raw)
      s.skip(/[ \t\r\n]*\{[ \t\r\n]*/n)
      until s.skip(/\}/n) || s.eos?
        spelled = s.scan(STRING)[1..-2]
        s.skip(/[ \t\r\n]*:[ \t\r\n]*/n)
        from = s.pos
        skip_value(s)
        found << Member.new(spelled, from, s.pos)
        s.skip(/[ \t\r\n]*,?[ \t\r\n]*/n)
      end
      found
    end

    def skip_value(scanner)
      return if scanner.skip(SCALAR)

      depth = 0
      loop do
        scanner.skip(INSIDE)
        depth += '[{'.include?(scanner.getch) ? 1 : -1
        break if depth.zero?
      end
    end
  end
end
