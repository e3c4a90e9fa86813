-- Who may call a server over a network. Of a token only its hash is kept: it cannot be read back.

CREATE TABLE token (
  hash BLOB PRIMARY KEY,
  name TEXT NOT NULL,
  namespace TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  expires_ms INTEGER, -- NULL: never
  revoked_ms INTEGER
) WITHOUT ROWID;

-- A name may be given again once the token that had it is revoked.
CREATE UNIQUE INDEX token_name ON token (name) WHERE revoked_ms IS NULL;
