CREATE TABLE good_jobs (
  id TEXT PRIMARY KEY, queue_name TEXT, priority INTEGER, serialized_params JSONB, scheduled_at TIMESTAMP, performed_at TIMESTAMP,
  finished_at TIMESTAMP, error TEXT, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP, active_job_id TEXT NOT NULL,
  concurrency_key TEXT, cron_key TEXT, retried_good_job_id TEXT, cron_at TIMESTAMP, is_discrete BOOLEAN, executions_count INTEGER, job_class TEXT,
  error_event INTEGER);
INSERT INTO good_jobs (id, active_job_id, queue_name, scheduled_at, serialized_params) VALUES
  ('1', 'a-1', 'mails', '2026-11-20 07:15:30', '{"job_class": "WelcomeJob", "job_id": "a-1", "queue_name": "mails", "arguments": [9007199254740993], "executions": 0}'),
  ('2', 'a-2', 'mails', '2100-01-01 00:00:00', '{"job_class": "ReportJob", "job_id": "a-2", "arguments": [], "executions": 0}');
INSERT INTO good_jobs (id, active_job_id, queue_name, scheduled_at, error, serialized_params) VALUES
  ('3', 'a-3', 'mails', '2100-01-01 00:00:00', 'Timeout: late', '{"job_class": "ReportJob", "job_id": "a-3", "arguments": [], "executions": 2}');
INSERT INTO good_jobs (id, active_job_id, queue_name, finished_at, error, retried_good_job_id, serialized_params) VALUES
  ('4', 'a-4', 'mails', '2026-11-20 07:15:30', 'Timeout: late', NULL, '{"job_class": "ReportJob", "job_id": "a-4", "arguments": [], "executions": 5}'),
  ('5', 'a-5', 'mails', '2026-11-20 07:15:30', 'Timeout: late', '6', '{"job_class": "ReportJob", "job_id": "a-5", "arguments": [], "executions": 5}'),
  ('7', 'a-7', 'mails', '2026-11-20 07:15:30', NULL, NULL, '{"job_class": "ReportJob", "job_id": "a-7", "arguments": [], "executions": 1}');
