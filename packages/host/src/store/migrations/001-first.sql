-- Instants are milliseconds since 1970 in UTC; zones are IANA names, kept per task (lesson 26).

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE groups (
  folder           TEXT PRIMARY KEY COLLATE NOCASE,
  jid              TEXT NOT NULL UNIQUE,
  name             TEXT NOT NULL,
  main             INTEGER NOT NULL,
  dialect          TEXT NOT NULL,
  trigger_text     TEXT,
  requires_trigger INTEGER NOT NULL,
  channel          TEXT,
  added_at         INTEGER NOT NULL,
  last_activity    INTEGER
);

CREATE TABLE tasks (
  id             TEXT PRIMARY KEY,
  group_folder   TEXT NOT NULL,
  jid            TEXT NOT NULL,
  created_by     TEXT NOT NULL,
  prompt         TEXT NOT NULL,
  script         TEXT,
  model          TEXT,
  schedule_type  TEXT NOT NULL,
  schedule_value TEXT NOT NULL,
  timezone       TEXT NOT NULL,
  context_mode   TEXT NOT NULL,
  status         TEXT NOT NULL,
  next_run       INTEGER,
  last_run       INTEGER,
  last_result    TEXT,
  created_at     INTEGER NOT NULL
);
CREATE INDEX tasks_open ON tasks (group_folder) WHERE status IN ('active', 'paused');
CREATE INDEX tasks_due ON tasks (next_run) WHERE status = 'active';

-- One row per handled file. `seq` is the claim's number and begins the claimed file's name, so that a restart can
-- tell what was done from what was not.
CREATE TABLE commands (
  seq          INTEGER PRIMARY KEY,
  group_folder TEXT NOT NULL,
  directory    TEXT NOT NULL,
  file         TEXT NOT NULL,
  inode        INTEGER NOT NULL,
  mtime_us     INTEGER NOT NULL,
  dialect      TEXT,
  type         TEXT,
  request_id   TEXT,
  reply        TEXT,
  outcome      TEXT NOT NULL,
  received_at  INTEGER NOT NULL,
  took_us      INTEGER NOT NULL
);
CREATE UNIQUE INDEX commands_request ON commands (group_folder, request_id) WHERE request_id IS NOT NULL;

CREATE TABLE messages (
  id              INTEGER PRIMARY KEY,
  group_folder    TEXT NOT NULL,
  jid             TEXT NOT NULL,
  kind            TEXT NOT NULL,
  text            TEXT NOT NULL,
  sender          TEXT,
  speech          TEXT,
  message_id      TEXT,
  status          TEXT NOT NULL,
  attempts        INTEGER NOT NULL,
  next_attempt_at INTEGER NOT NULL,
  error           TEXT,
  created_at      INTEGER NOT NULL,
  sent_at         INTEGER
);
-- Most messages are delivered at the first attempt: they are found by their number, behind the last one attempted
-- (`meta.attempted`), and only those that failed before are worth an index.
CREATE INDEX messages_retry ON messages (next_attempt_at) WHERE status = 'pending' AND attempts > 0;
