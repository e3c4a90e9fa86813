-- What the hooks of clients note, and what they have ready to give.

-- Which session a client's process is at: the newest start counts.
CREATE TABLE binding (
  client TEXT PRIMARY KEY, -- number and start of the process
  namespace TEXT NOT NULL,
  session_id TEXT NOT NULL,
  transcript TEXT NOT NULL, -- the session's file; empty where it may not be read
  cwd TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) WITHOUT ROWID;

-- Which server follows the transcript of what a client's process is at.
CREATE TABLE follower (
  client TEXT PRIMARY KEY,
  server TEXT NOT NULL, -- number and start of the process
  at_ms INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE hook_state (
  session INTEGER PRIMARY KEY,
  injection TEXT NOT NULL DEFAULT '', -- for the start after the compaction that was announced last
  given TEXT NOT NULL DEFAULT '', -- what that start was given
  refinement TEXT NOT NULL DEFAULT '', -- for the next prompt, once
  rules INTEGER NOT NULL DEFAULT 0, -- rules in force when the last compaction was announced
  rules_told INTEGER NOT NULL DEFAULT 0, -- of them, those that the client's summary holds
  held INTEGER NOT NULL DEFAULT 0 -- compactions asked for by hand that were held back
);
