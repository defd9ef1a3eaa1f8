CREATE TABLE river_job (
  id integer PRIMARY KEY, args blob NOT NULL DEFAULT '{}', attempt integer NOT NULL DEFAULT 0, attempted_at timestamp, attempted_by blob,
  created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, errors blob, finalized_at timestamp, kind text NOT NULL,
  max_attempts integer NOT NULL, metadata blob NOT NULL DEFAULT (json('{}')), priority integer NOT NULL DEFAULT 1,
  queue text NOT NULL DEFAULT 'default', state text NOT NULL DEFAULT 'available',
  scheduled_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP, tags blob NOT NULL DEFAULT (json('[]')), unique_key blob, unique_states integer);
INSERT INTO river_job (kind, queue, max_attempts, args) VALUES ('send_email', 'mails', 25, CAST('{"n": 9007199254740993}' AS blob));
INSERT INTO river_job (kind, max_attempts, state, scheduled_at, priority) VALUES ('report', 25, 'scheduled', '2100-01-01 00:00:00', 4);
INSERT INTO river_job (kind, max_attempts, state, scheduled_at, attempt) VALUES ('report', 25, 'retryable', '2100-01-01 00:00:00', 2);
INSERT INTO river_job (kind, max_attempts, state, finalized_at, attempt) VALUES ('report', 25, 'discarded', '2026-11-20 07:15:30.250', 25);
INSERT INTO river_job (kind, max_attempts, state, finalized_at) VALUES ('report', 25, 'completed', '2026-11-20 07:15:30');
