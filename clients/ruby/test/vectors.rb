# frozen_string_literal: true

require 'base64'
require 'json'

# The test cases of all client libraries.
module Vectors
  FOLDER = File.expand_path('../../conformance/vectors', __dir__)

  module_function

  def cases(name)
    # Ruby does not read lone surrogates. They become text that is invalid in Ruby too.
    text = File.read("#{FOLDER}/#{name}.json").gsub(/(?<!\\)"\\ud800"/, '"\ue000"')
    JSON.parse(text, max_nesting: 200_000).map { |vector| vector.transform_values { |value| broken(value) } }
  end

  def broken(value)
    case value
    when "\ue000" then "\xED\xA0\x80"
    when Array then value.map { |v| broken(v) }
    when Hash then value.transform_values { |v| broken(v) }
    else value
    end
  end

  def body(vector)
    vector.key?('body_base64') ? Base64.decode64(vector['body_base64']) : vector['body']
  end
end
