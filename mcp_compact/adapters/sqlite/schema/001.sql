-- The archive. Content is only ever added; what is updated are counters and flags derived from it.
-- Times are milliseconds since 1970, weights integer units (1,000 are a token of text).

-- One row. Record ids are never used twice, also after a deletion: the full-text index knows them by id.
CREATE TABLE archive (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  last_record INTEGER NOT NULL,
  indexed_record INTEGER NOT NULL -- records up to this id are in the full-text index
);

INSERT INTO archive (id, last_record, indexed_record) VALUES (1, 0, 0);

CREATE TABLE session (
  id INTEGER PRIMARY KEY,
  namespace TEXT NOT NULL,
  session_id TEXT NOT NULL,
  title TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL DEFAULT '',
  context_window INTEGER,
  cwd TEXT NOT NULL DEFAULT '',
  owner TEXT NOT NULL DEFAULT '',
  parent_session_id TEXT,
  forked_at INTEGER, -- last record of the parent that it began with
  agent_id TEXT,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  last_seq INTEGER NOT NULL DEFAULT 0,
  message_count INTEGER NOT NULL DEFAULT 0,
  body_bytes INTEGER NOT NULL DEFAULT 0,
  head_seq INTEGER NOT NULL DEFAULT 0, -- newest record of the dialogue (markers and their records are none)
  head_uuid TEXT NOT NULL DEFAULT '',
  marker_seq INTEGER NOT NULL DEFAULT 0, -- head of the effective chain of markers, 0 for none
  boundary_seq INTEGER NOT NULL DEFAULT 0, -- its newest compact boundary
  base_seq INTEGER NOT NULL DEFAULT 0, -- what that boundary knew of
  natives INTEGER NOT NULL DEFAULT 0, -- markers of the client's own: they count only while active
  awaited INTEGER NOT NULL DEFAULT 0, -- members of markers that have not arrived yet
  epoch INTEGER NOT NULL DEFAULT 0, -- grows when older records enter or leave the live context
  live_units INTEGER NOT NULL DEFAULT 0,
  live_answers INTEGER NOT NULL DEFAULT 0,
  live_media INTEGER NOT NULL DEFAULT 0,
  live_messages INTEGER NOT NULL DEFAULT 0,
  live_count INTEGER NOT NULL DEFAULT 0, -- service records left out
  live_estimated INTEGER NOT NULL DEFAULT 0, -- live records without an exact count
  live_hash BLOB NOT NULL DEFAULT x'00000000000000000000000000000000',
  overhead_tokens INTEGER NOT NULL DEFAULT 0,
  overhead_source TEXT NOT NULL DEFAULT 'none',
  anchor_seq INTEGER NOT NULL DEFAULT 0, -- first record of the newest answer with usage, 0 for none
  compactions INTEGER NOT NULL DEFAULT 0,
  last_compaction_ms INTEGER,
  memory_version INTEGER NOT NULL DEFAULT 0,
  memory_mark_seq INTEGER,
  declines TEXT NOT NULL DEFAULT '{}',
  last_attempt TEXT NOT NULL DEFAULT '',
  auto_failures INTEGER NOT NULL DEFAULT 0, -- automatic compactions in a row that came to nothing
  UNIQUE (namespace, session_id)
);

CREATE INDEX session_recent ON session (namespace, updated_ms);

CREATE TABLE body (
  id INTEGER PRIMARY KEY,
  data BLOB NOT NULL, -- the transcript's own bytes, or canonical JSON of what was received
  message BLOB -- the message as JSON where it cannot be read from data as it stands
);

CREATE TABLE record (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  uuid TEXT NOT NULL,
  parent_uuid TEXT,
  parent_seq INTEGER NOT NULL, -- resolved when stored; 0 for a root
  is_root INTEGER NOT NULL,
  kind INTEGER NOT NULL, -- 0 other, 1 message, 2 marker of ours, 3 service record of ours, 4 of the client's own
  type TEXT NOT NULL,
  subtype TEXT NOT NULL,
  role TEXT, -- NULL: no message
  message_id TEXT,
  agent_id TEXT,
  at_ms INTEGER,
  units INTEGER NOT NULL, -- by estimate
  exact_units INTEGER, -- by the tokenizer; replaces units
  answers INTEGER NOT NULL,
  media INTEGER NOT NULL,
  messages INTEGER NOT NULL,
  text_holding INTEGER NOT NULL,
  has_thinking INTEGER NOT NULL,
  is_meta INTEGER NOT NULL,
  is_summary INTEGER NOT NULL,
  active INTEGER NOT NULL, -- 3 on the chain of parents, 2 shares a message id with it, 1 answers one of their calls
  context_tokens INTEGER, -- what the provider counted for the request that a record answers
  need_seq INTEGER NOT NULL, -- oldest record that has to stay with this one
  cleared INTEGER NOT NULL DEFAULT 0, -- clearings in effect
  snipped_by INTEGER NOT NULL DEFAULT 0,
  calls TEXT, -- JSON list of tool_use ids, NULL for none
  results TEXT,
  content_hash BLOB,
  body_hash BLOB NOT NULL,
  body_id INTEGER NOT NULL -- forks share bodies
);

CREATE UNIQUE INDEX record_seq ON record (session, seq);

CREATE UNIQUE INDEX record_uuid ON record (session, uuid);

CREATE INDEX record_message ON record (session, message_id) WHERE message_id IS NOT NULL;

-- Records that share another one's body, which has the id of the record that brought it.
CREATE INDEX record_shared ON record (body_id) WHERE body_id <> id;

CREATE INDEX record_words ON record (session, seq) WHERE text_holding = 1 AND role = 'user';

CREATE TABLE call (
  session INTEGER NOT NULL,
  tool_use_id TEXT NOT NULL,
  seq INTEGER NOT NULL,
  block INTEGER NOT NULL,
  name TEXT NOT NULL,
  path TEXT, -- the file that the input names, NULL for none
  first_line INTEGER, -- of a read of that file; NULL where its lines are not known
  end_line INTEGER, -- the line after the last
  input_hash BLOB, -- equal inputs have the same; NULL where it is not known
  input_units INTEGER NOT NULL DEFAULT 0, -- what clearing the input frees
  PRIMARY KEY (session, tool_use_id, seq, block)
) WITHOUT ROWID;

CREATE TABLE result (
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  block INTEGER NOT NULL,
  tool_use_id TEXT NOT NULL,
  units INTEGER NOT NULL,
  answers INTEGER NOT NULL,
  media INTEGER NOT NULL,
  cleared_units INTEGER NOT NULL, -- of what would stand in its place
  cleared_answers INTEGER NOT NULL,
  cleared_media INTEGER NOT NULL,
  is_error INTEGER NOT NULL,
  cleared_by INTEGER, -- marker whose clearing is in effect; below 0: one of the session that this one was forked from
  PRIMARY KEY (session, seq, block)
) WITHOUT ROWID;

CREATE INDEX result_call ON result (session, tool_use_id);

CREATE INDEX result_uncleared ON result (session, seq) WHERE cleared_by IS NULL;

CREATE TABLE media (
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  block INTEGER NOT NULL,
  part INTEGER NOT NULL, -- place inside a result, -1 for the block itself
  kind TEXT NOT NULL,
  tokens INTEGER NOT NULL,
  tool_use_id TEXT,
  cleared_by INTEGER,
  mark_units INTEGER NOT NULL DEFAULT 0, -- of what would stand in its place
  bytes INTEGER NOT NULL DEFAULT 0, -- what it takes in a request
  PRIMARY KEY (session, seq, block, part)
) WITHOUT ROWID;

CREATE TABLE marker (
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  uuid TEXT NOT NULL,
  kind TEXT NOT NULL,
  native INTEGER NOT NULL,
  parent_seq INTEGER,
  base_seq INTEGER NOT NULL,
  restores_seq INTEGER,
  before_epoch INTEGER, -- the live totals when it was written; NULL where they are not known
  before_units INTEGER,
  before_answers INTEGER,
  before_media INTEGER,
  before_messages INTEGER,
  before_count INTEGER,
  before_estimated INTEGER,
  before_hash BLOB,
  metadata TEXT NOT NULL,
  PRIMARY KEY (session, seq)
) WITHOUT ROWID;

CREATE TABLE member (
  session INTEGER NOT NULL,
  marker INTEGER NOT NULL,
  role TEXT NOT NULL, -- service, preserved, snipped
  ordinal INTEGER NOT NULL,
  uuid TEXT NOT NULL,
  seq INTEGER, -- NULL until it arrives
  PRIMARY KEY (session, marker, role, ordinal)
) WITHOUT ROWID;

CREATE INDEX member_awaited ON member (session, uuid) WHERE seq IS NULL;

CREATE TABLE cleared (
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  block INTEGER NOT NULL,
  part INTEGER NOT NULL, -- -1 for the block itself
  kind TEXT NOT NULL,
  marker INTEGER NOT NULL,
  tool_use_id TEXT,
  units INTEGER NOT NULL, -- what the clearing frees
  answers INTEGER NOT NULL,
  media INTEGER NOT NULL,
  messages INTEGER NOT NULL,
  in_effect INTEGER NOT NULL,
  PRIMARY KEY (session, seq, block, part, kind, marker)
) WITHOUT ROWID;

CREATE INDEX cleared_marker ON cleared (session, marker);

CREATE TABLE ledger (
  session INTEGER NOT NULL,
  kind TEXT NOT NULL, -- instruction, tool
  hash BLOB NOT NULL,
  first_seq INTEGER NOT NULL, -- 0: of a record of the parent that a fork does not hold
  seq INTEGER NOT NULL, -- newest record that holds it
  text TEXT NOT NULL,
  PRIMARY KEY (session, kind, hash)
) WITHOUT ROWID;

CREATE INDEX ledger_recent ON ledger (session, kind, seq);

CREATE TABLE memory (
  session INTEGER NOT NULL,
  version INTEGER NOT NULL,
  text TEXT NOT NULL,
  mark_uuid TEXT,
  mark_seq INTEGER,
  covers_all INTEGER NOT NULL DEFAULT 0,
  writer TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (session, version)
) WITHOUT ROWID;

CREATE TABLE pin (
  session INTEGER NOT NULL,
  kind TEXT NOT NULL, -- instruction, plan, todos, skill, file, tools
  name TEXT NOT NULL,
  ordinal INTEGER NOT NULL,
  text TEXT NOT NULL,
  seq INTEGER NOT NULL, -- newest record when it was pinned
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (session, kind, name)
) WITHOUT ROWID;

-- Compactions that wait for a summary. Nothing is locked: request and base give the same plan again.
CREATE TABLE pending (
  namespace TEXT NOT NULL,
  compaction_id TEXT NOT NULL,
  session INTEGER NOT NULL,
  request TEXT NOT NULL,
  last_seq INTEGER NOT NULL,
  marker_seq INTEGER NOT NULL,
  live_hash TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  used INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (namespace, compaction_id)
) WITHOUT ROWID;

CREATE TABLE conflict (
  session INTEGER NOT NULL,
  uuid TEXT NOT NULL,
  body_hash BLOB NOT NULL,
  data BLOB NOT NULL,
  at_ms INTEGER NOT NULL,
  PRIMARY KEY (session, uuid, body_hash)
);

CREATE TABLE source (
  namespace TEXT NOT NULL,
  source TEXT NOT NULL,
  session INTEGER NOT NULL,
  offset INTEGER NOT NULL,
  line INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  head_hash TEXT NOT NULL,
  state TEXT NOT NULL,
  PRIMARY KEY (namespace, source)
) WITHOUT ROWID;

-- Filled in batches, long after the records are stored; holds no copy of the text.
CREATE VIRTUAL TABLE fts USING fts5 (text, content = '', columnsize = 0, tokenize = "unicode61 tokenchars '_'");

-- What a large archive looks like, so that the planner starts from the few rows and never walks a whole session.
ANALYZE sqlite_schema;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
  ('session', 'sqlite_autoindex_session_1', '200 100 1'),
  ('session', 'session_recent', '200 100 1'),
  ('record', 'record_seq', '1000000 10000 1'),
  ('record', 'record_uuid', '1000000 10000 1'),
  ('record', 'record_message', '400000 4000 2'),
  ('record', 'record_shared', '20000 2'),
  ('record', 'record_words', '20000 200 1'),
  ('call', 'call', '300000 3000 1 1 1'),
  ('result', 'result', '300000 3000 1 1'),
  ('result', 'result_call', '300000 3000 1'),
  ('result', 'result_uncleared', '100000 1000 1'),
  ('media', 'media', '10000 100 2 2 1'),
  ('marker', 'marker', '10000 100 1'),
  ('member', 'member', '500000 5000 50 25 1'),
  ('member', 'member_awaited', '20 10 1'),
  ('cleared', 'cleared', '100000 1000 2 2 2 1 1'),
  ('cleared', 'cleared_marker', '100000 1000 10'),
  ('ledger', 'ledger', '20000 200 100 1'),
  ('ledger', 'ledger_recent', '20000 200 100 1'),
  ('memory', 'memory', '5000 50 1'),
  ('pin', 'pin', '500 5 2 1'),
  ('pending', 'pending', '20 10 1');

ANALYZE sqlite_schema;
