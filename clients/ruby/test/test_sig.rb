# frozen_string_literal: true

require_relative 'helper'

# The signatures in sig/ match the library.
class TestSig < Minitest::Test
  FILE = File.expand_path('../sig/millrace.rbs', __dir__)

  # Signatures of methods, by class or module, and by whether they are singleton or instance
  # methods.
  def signatures
    env = RBS::Environment.from_loader(RBS::EnvironmentLoader.new.tap { |loader| loader.add(path: Pathname(FILE)) }).resolve_type_names
    builder = RBS::DefinitionBuilder.new(env: env)
    names = env.class_decls.keys.select { |name| name.to_s.start_with?('::Millrace') }
    names.flat_map do |name|
      [[false, builder.build_instance(name)], [true, builder.build_singleton(name)]].map do |own, definition|
        [Object.const_get(name.to_s), own, definition.methods.select { |_, method| method.implemented_in == name }]
      end
    end
  end

  def setup
    require 'rbs'
  rescue LoadError
    text = 'the gem rbs is not installed: nothing checks sig/millrace.rbs'
    flunk text if ENV['CI'] # Debian's Ruby brings it
    warn "#{self.class}##{name}: #{text}"
    skip text
  end

  def each_signature
    signatures.each do |owner, own, methods|
      methods.each do |name, method|
        next if own && name == :new

        yield "#{owner}#{own ? '.' : '#'}#{name}", ruby_method(owner, own, name), method
      end
    end
  end

  def ruby_method(owner, own, name)
    own ? owner.method(name) : owner.instance_method(name)
  end

  def check_parameters(what, ruby, function)
    kinds = ruby.parameters.map(&:first)
    return if [[:rest], %i[rest keyrest block]].include?(kinds) # (...)

    positional = [function.required_positionals.size + function.trailing_positionals.size, function.optional_positionals.size]
    assert_equal [kinds.count(:req), kinds.count(:opt)], positional, "#{what}: positional parameters"
    assert_equal kinds.include?(:rest), !function.rest_positionals.nil?, what
    check_keywords(what, ruby, function.required_keywords.keys + function.optional_keywords.keys)
  end

  def check_keywords(what, ruby, signed)
    named = ruby.parameters.filter_map { |kind, name| name if %i[key keyreq].include?(kind) }
    assert_empty named - signed, "#{what}: the signature lacks keywords"
    assert_empty signed - named, "#{what}: the method has no such keyword" if ruby.parameters.none? { |kind, _| kind == :keyrest }
  end

  def test_each_signature_is_that_of_a_method
    count = 0
    each_signature do |what, ruby, method|
      method.method_types.each { |type| check_parameters(what, ruby, type.type) }
      count += 1
    end
    assert_operator count, :>, 80
  end

  # Returns whether the comment above a definition marks it as private.
  def hidden?(ruby)
    file, line = ruby.source_location
    return true unless file&.include?('/lib/millrace')

    above = File.readlines(file)[0...line - 1].reverse.take_while { |text| text.match?(/\A\s*(#|attr_|:|\w+ = )/) }
    above.any? { |text| text.include?('@private') }
  end

  def test_each_public_method_has_a_signature
    signatures.each do |owner, own, methods|
      names = own ? owner.singleton_methods(false) : owner.public_instance_methods(false)
      names -= methods.keys
      missing = names.reject { |name| hidden?(ruby_method(owner, own, name)) }
      assert_empty missing, "#{owner}#{' itself' if own}"
    end
  end

  def test_options_of_jobs
    each_signature do |what, _ruby, method|
      keywords = method.method_types.first.type.optional_keywords.keys
      options = Millrace::NewJob::OPTIONS - (keywords.include?(:properties) ? %i[queue limited limit_key unique] : [])
      assert_empty options - keywords, what if keywords.include?(:traceparent)
    end
  end
end
