CREATE TABLE oban_jobs (
  id INTEGER PRIMARY KEY, state TEXT NOT NULL DEFAULT 'available', queue TEXT NOT NULL DEFAULT 'default', worker TEXT NOT NULL,
  args JSON NOT NULL DEFAULT '{}', meta JSON NOT NULL DEFAULT '{}', tags JSON NOT NULL DEFAULT '[]', errors JSON NOT NULL DEFAULT '[]',
  attempt INTEGER NOT NULL DEFAULT 0, max_attempts INTEGER NOT NULL DEFAULT 20, priority INTEGER NOT NULL DEFAULT 0,
  inserted_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, scheduled_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  attempted_at TEXT, attempted_by JSON NOT NULL DEFAULT '[]', cancelled_at TEXT, completed_at TEXT, discarded_at TEXT);
INSERT INTO oban_jobs (worker, queue, args, tags) VALUES ('MyApp.SendEmail', 'mails', '{"n": 9007199254740993}', '["urgent"]');
INSERT INTO oban_jobs (worker, state, scheduled_at, priority) VALUES ('MyApp.Report', 'scheduled', '2100-01-01T00:00:00.000000', 9);
INSERT INTO oban_jobs (worker, state, scheduled_at, attempt, errors) VALUES
  ('MyApp.Report', 'retryable', '2100-01-01T00:00:00.000000', 2, '[{"attempt": 1, "error": "first"}, {"attempt": 2, "error": "late"}]');
INSERT INTO oban_jobs (worker, state, discarded_at, attempt) VALUES ('MyApp.Report', 'discarded', '2026-11-20T07:15:30.250000', 20);
INSERT INTO oban_jobs (worker, state) VALUES ('MyApp.Report', 'completed'), ('MyApp.Report', 'executing');
