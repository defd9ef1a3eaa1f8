# frozen_string_literal: true

# Finds, reschedules, retries and deletes jobs. The arguments are a sidecar's URL, the password for
# it, a jid, and the tag of 503 jobs.

require 'millrace'

URL, PASSWORD, ODD, TAG = ARGV
INSPECTOR = Millrace::Inspector.new(URL)
DUE = Time.at(4_000_000_000)
LATER = Time.at(4_100_000_000)

def check(holds, what = 'it does not hold')
  raise what unless holds
end

def raises(kind)
  yield
rescue kind => e
  e
else
  raise "no #{kind}"
end

def eventually
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 30
  until yield
    check(Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline, 'too late')
    sleep(0.1)
  end
end

def due(jid)
  INSPECTOR.find(jid).entries.first&.at
rescue Millrace::NotFound
  nil
end

entry = INSPECTOR.find('later').entries.first
check(entry.to_h.except(:record, :at) == { jid: 'later', set: 'scheduled-jobs', job_class: 'SendEmail', queue: 'mails', attempt: 0 })
check(entry.at == DUE, entry.inspect)
check(entry.record['job']['args'] == ['ann@example.com'])
tagged = INSPECTOR.find_by_tag(TAG).to_a
check(tagged.map(&:set).tally == { 'scheduled-jobs' => 501, 'retries' => 1, 'dead-jobs' => 1 }, tagged.map(&:set).tally)
check(tagged.map(&:jid).uniq.size == 503)
INSPECTOR.find_by_tag('x') { |one| check(one.record['job']['tags'].include?(TAG)) }
check(INSPECTOR.find_by_tag('x').first.queue == 'tagged')
check(INSPECTOR.find_by_tag('no such tag').none?)
{ 'later' => LATER, 'failed' => LATER.to_i }.each do |jid, at|
  INSPECTOR.reschedule(jid, at)
  eventually { due(jid) == LATER }
end
raises(Millrace::NotFound) { INSPECTOR.reschedule('dead', LATER) }

%w[failed dead].each { |jid| INSPECTOR.retry(jid) }
eventually { INSPECTOR.queue('mails').to_h.values_at(:ready, :scheduled, :retries, :dead) == [2, 2, 0, 0] }
check(INSPECTOR.queues.map(&:name) == ['mails'])
raises(Millrace::NotFound) { INSPECTOR.retry('later') }

['later', ODD].each do |jid|
  INSPECTOR.delete(jid)
  eventually { due(jid).nil? }
  raises(Millrace::NotFound) { INSPECTOR.delete(jid) }
end
INSPECTOR.cancel('runs')
raises(Millrace::NotFound) { INSPECTOR.cancel('failed') }
raises(Millrace::NotFound) { INSPECTOR.find("unknown's") }
raises(Millrace::NotFound) { INSPECTOR.queue('no/such queue') }

refused = raises(Millrace::ApiError) { Millrace::Inspector.new(URL.sub(PASSWORD, 'wrong')).delete('later') }
check([refused.status, refused.code] == [401, 'not_authorised'], refused.inspect)
raises(Millrace::Unreachable) { Millrace::Inspector.new('http://127.0.0.1:1').delete('later') }
check(raises(ArgumentError) { Millrace::Inspector.new('127.0.0.1:15680') }.message.include?('http://user:password@host:port'))
check(!INSPECTOR.inspect.include?(PASSWORD))
puts 'inspected'
