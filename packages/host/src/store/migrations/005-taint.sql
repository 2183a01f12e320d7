-- What an agent's context has read, by group and context: `session` for the conversation that goes on, `run:…` for a
-- run with a context of its own, `task:…` for what a task was made in, `shelf:…` for what a service keeps for later.
CREATE TABLE taints (
  group_folder TEXT NOT NULL,
  context      TEXT NOT NULL,
  corrupted_at INTEGER,
  corrupted_by TEXT,
  secret_at    INTEGER,
  secret_by    TEXT,
  PRIMARY KEY (group_folder, context)
) WITHOUT ROWID;

-- What waits for a person, and how it was decided. `seq` is that of the held request, which keeps the whole of it; here
-- is what people are shown. `code` is for whoever types: it counts in this chat, for this one, once.
CREATE TABLE approvals (
  seq          INTEGER PRIMARY KEY,
  group_folder TEXT NOT NULL,
  jid          TEXT NOT NULL,
  message_id   INTEGER NOT NULL UNIQUE,
  code         TEXT NOT NULL,
  action       TEXT NOT NULL,
  taint        TEXT NOT NULL,
  why          TEXT NOT NULL,
  status       TEXT NOT NULL,
  decided_by   TEXT,
  words        TEXT,
  rule         INTEGER,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  closed_at    INTEGER
);
CREATE UNIQUE INDEX approvals_code ON approvals (jid, code);
CREATE INDEX approvals_open ON approvals (jid) WHERE status = 'open';

-- "Allow always": this group, this action, with exactly this. Numbers are never given twice: the audit log names them.
CREATE TABLE approval_rules (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  group_folder TEXT NOT NULL,
  name         TEXT NOT NULL,
  digest       TEXT NOT NULL,
  summary      TEXT NOT NULL,
  made_by      TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  UNIQUE (group_folder, digest)
);
