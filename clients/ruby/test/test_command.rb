# frozen_string_literal: true

require_relative 'helper'
require 'millrace/command'

# The command's line.
class TestCommand < Minitest::Test
  def test_help_and_version
    assert_output(/--queue NAME/) { assert_equal 0, Millrace::Command.run(['--help']) }
    assert_output("#{Millrace::VERSION}\n") { assert_equal 0, Millrace::Command.run(['-v']) }
  end

  def test_what_is_wrong_is_said
    [['--nonsense'], ['--url', 'http://x'], ['-q', 'a,b'], ['-q', 'a,0', '-q', 'b']].each do |args|
      assert_output(nil, /\Amillrace-worker: /) { assert_equal 1, Millrace::Command.run(args) }
    end
  end

  def test_queues
    queues = lambda do |*args|
      command = Millrace::Command.new
      command.send(:parser).parse(args)
      command.send(:queues)[:queues]
    end
    assert_equal %w[a b], queues.call('-q', 'a', '--queue', 'b')
    assert_equal({ 'a' => 3, 'b' => 1 }, queues.call('-q', 'a,3', '-q', 'b'))
    assert_nil queues.call
  end
end
