-- A session's row answers its status by itself, and knows when the session was last at work.

ALTER TABLE session ADD COLUMN active_ms INTEGER NOT NULL DEFAULT 0; -- time of its newest record, where records have times
ALTER TABLE session ADD COLUMN memory_units INTEGER NOT NULL DEFAULT 0; -- of the newest version
ALTER TABLE session ADD COLUMN media_count INTEGER; -- in the live context; NULL: not counted since this column is there
ALTER TABLE session ADD COLUMN media_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN client_tokens INTEGER; -- what a client's own context holds, by its usage; NULL: not known

UPDATE session SET
  active_ms = coalesce((SELECT min(r.at_ms, session.updated_ms) FROM record r
    WHERE r.session = session.id AND r.at_ms IS NOT NULL ORDER BY r.seq DESC LIMIT 1), updated_ms),
  memory_units = coalesce((SELECT 293 * length(m.text) FROM memory m
    WHERE m.session = session.id AND m.version = session.memory_version), 0);

CREATE INDEX session_active ON session (namespace, active_ms);

CREATE INDEX media_uncleared ON media (session, seq) WHERE cleared_by IS NULL;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('session', 'session_active', '200 100 1'),
  ('media', 'media_uncleared', '10000 100 1');

ANALYZE sqlite_schema;
