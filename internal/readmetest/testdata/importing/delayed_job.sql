CREATE TABLE delayed_jobs (
  id INTEGER PRIMARY KEY, priority INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, handler TEXT NOT NULL, last_error TEXT,
  run_at DATETIME, locked_at DATETIME, failed_at DATETIME, locked_by VARCHAR, queue VARCHAR, created_at DATETIME, updated_at DATETIME);
INSERT INTO delayed_jobs (queue, run_at, handler) VALUES ('mails', '2026-11-20 07:15:30.000000', '--- !ruby/object:ActiveJob::QueueAdapters::DelayedJobAdapter::JobWrapper
job_data:
  job_class: WelcomeJob
  job_id: 4f1a
  queue_name: mails
  arguments:
  - 9007199254740993
  executions: 0
');
INSERT INTO delayed_jobs (run_at, attempts, last_error, handler) VALUES ('2100-01-01 00:00:00', 2, 'late
a.rb:1', '--- !ruby/struct:NewsletterJob
text: Hello
emails:
- ann@example.com
');
INSERT INTO delayed_jobs (run_at, failed_at, attempts, handler) VALUES ('2026-11-20 07:15:30', '2026-11-20 07:15:30', 25, '--- !ruby/object:Delayed::PerformableMethod
object: !ruby/object:Report
  id: 7
method_name: :deliver
args: []
');
