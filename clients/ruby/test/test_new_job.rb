# frozen_string_literal: true

require 'bigdecimal'
require_relative 'helper'

# Rules for new jobs that no vector has.
class TestNewJob < Minitest::Test
  include Helper

  def refused(*args, **options)
    assert_raises(Invalid, options.inspect) { NewJob.new(*args, **options).prepare(1.0) }.message
  end

  def test_what_is_no_json
    deep = []
    2000.times { deep = [deep] }
    round = []
    round << round
    [[:symbol], [Object.new], [Float::NAN], [Float::INFINITY], [Time.now], ["\xff"], ['é'.b], [{ 1 => 2 }], [deep], [round],
     [{ "\xff" => 1 }], ['x' * (17 << 20)]].each { |args| refused('A', args) }
  end

  # Handlers would get strings instead.
  def test_symbols_are_refused_at_any_depth
    [[:paid], [{ paid: 1 }], [{ 'order' => [{ paid: 1 }] }], [[[:paid]]]].each do |args|
      assert_match(/JSON has no Symbol: write "paid" for :paid/, refused('A', args))
    end
    refused('A', [], fields: { tenant: { name: 'x' } })
    refused('A', [], fields: { tenant: :x })
  end

  def test_options_that_are_wrong
    { retries: 3, tags: 'abc', timeout: -1, priority: true, dead: 1, jid: 5, expires_at: 'x', fields: { queue: 1 }, retry: 1.5 }
      .each { |name, value| refused('A', [], name => value) }
    refused('A', [], at: 'tomorrow')
    refused(5)
    refused('A', nil)
    refused('A', [], queue: "\xff")
  end

  def test_times_and_fields
    _, message = NewJob.new('A', [{ 'a' => 1 }], at: Time.at(1_577_836_800), fields: { customer: 7 }, expires_at: Time.at(2)).prepare(1.0)
    record = JSON.parse(message.body)
    assert_in_delta 1_577_836_800.0, record['scheduled_at']
    assert_equal [7, 2.0, [{ 'a' => 1 }]], record['job'].values_at('customer', 'expires_at', 'args')
  end

  # JSON would write them as texts.
  def test_numbers_of_other_classes
    [BigDecimal('2.5'), 5/2r].each do |number|
      _, message = NewJob.new('A', [], at: number, expires_at: number, timeout: number).prepare(1.0)
      record = JSON.parse(message.body)
      assert_equal [2.5, 2.5, 2.5], [record['scheduled_at'], *record['job'].values_at('expires_at', 'timeout')]
    end
  end
end
