# frozen_string_literal: true

require 'bigdecimal'
require_relative 'helper'
require_relative 'beside_broker'

# Delayed messages, beside the vectors.
class TestMessage < Minitest::Test
  include Helper

  # Returns the message in a record, after JSON.
  def delayed(body = '', exchange: 'orders', routing_key: '', **options)
    fake = Testing::Fake.new
    fake.publish_in(60, exchange, routing_key, body, **options)
    fake.jobs.fetch(0).args.fetch(0)
  end

  def refused(reason, *args, **options)
    assert_match(reason, assert_raises(Invalid, reason.inspect) { delayed(*args, **options) }.message)
  end

  def test_what_is_refused
    refused(/the body must be a String, not Hash/, { id: 17 })
    refused(/exchange must be a text/, exchange: nil)
    refused(/routing_key must be a text/, routing_key: :created)
    refused(/a message has no option queue/, queue: 'low')
    refused(/limits count no messages/, limit_key: 'k')
    refused(/there is no option retries/, retries: 1)
    refused(/properties must be a hash/, properties: 7)
    { user_id: /there is no property user_id/, expiration: /expiration must be a text of milliseconds/,
      priority: /priority must be a whole/, delivery_mode: /from 1 to 2/, app_id: /app_id must be a text/,
      headers: /headers must be a hash/ }
      .each { |name, reason| refused(reason, properties: { name => true }) }
    [-1, Float::NAN, '2026-11-29', Time.at(-1)].each { |time| refused(/timestamp must be a time/, properties: { timestamp: time }) }
  end

  def test_headers_that_json_does_not_have
    round = {}
    round['a'] = [round]
    { "\xff" => /not Unicode/, 'é'.b => /not Unicode/, BigDecimal('1') => /JSON has no BigDecimal/, Time.now => /JSON has no Time/,
      paid: /JSON has no Symbol/, round => /nested deeper/, Float::NAN => /NaN/,
      (1 << 63) => /more than 64 bits/, { 1 => 2 } => /the name of a header must be a text/ }
      .each { |value, reason| refused(reason, properties: { headers: { a: [value] } }) }
  end

  def test_values
    headers = { low: -(1 << 63), whole: 2.0, table: { 'a' => [nil, true] } }
    message = delayed("\xE9".dup.force_encoding('ISO-8859-1'))
    assert_equal({ 'exchange' => 'orders', 'routing_key' => '', 'body_base64' => '6Q==' }, message)
    message = delayed('é'.b, properties: { timestamp: Time.at(1_577_836_800.9), headers: headers })
    assert_equal ['é', 1_577_836_800], [message['body'], message['properties']['timestamp']]
    assert_equal({ 'low' => -(1 << 63), 'whole' => 2.0, 'table' => { 'a' => [nil, true] } }, message['properties']['headers'])
    assert_kind_of Float, message['properties']['headers']['whole']
  end

  def test_the_default_client
    Millrace.client = fake = Testing::Fake.new
    jids = [Millrace.publish_at(Time.at(12.5), '', 'mails', 'x', jid: 'mine'), Millrace.publish_in(60, 'orders', tags: ['web'])]
    assert_equal(jids, fake.jobs.map { |enqueued| enqueued.job.jid })
    assert_equal ['mine', 12.5], [jids.first, fake.jobs.first.at]
    job = fake.jobs.last.job
    assert_equal ['millrace.Message', 'millrace.messages', ['web']], [job.job_class, job.queue, job.tags]
  ensure
    Millrace.client = nil
  end
end

# A delayed message on a broker.
class TestMessageOnBroker < Minitest::Test
  include BesideBroker

  def test_it_is_a_scheduled_job
    properties = { headers: { 'tenant' => 'a' } }
    jid = client.publish_in(60, 'orders', 'order.created', "\xff", properties: properties, tags: ['web'])
    _, published, body = messages(@sets.fetch('scheduled_jobs'), 1).first
    record = JSON.parse(body)
    assert_equal [jid, jid, 'scheduled_job'], [published.message_id, *record.values_at('jid', 'type')]
    assert_in_delta Time.now.to_f + 60, record['scheduled_at'], 30
    assert_equal ['millrace.Message', 'millrace.messages', ['web']], record['job'].values_at('class', 'queue', 'tags')
    assert_equal [{ 'exchange' => 'orders', 'routing_key' => 'order.created', 'body_base64' => '/w==',
                    'properties' => { 'headers' => { 'tenant' => 'a' } } }], record['job']['args']
  end
end
