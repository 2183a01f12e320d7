-- What people said to agents, until a run has used it. `calls` is 0 for what was said beside them: it goes along with
-- the next one that calls, and waits for another if that run does not use it. Numbers are never given twice, as
-- readers remember how far they have come.
CREATE TABLE incoming (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  group_folder TEXT NOT NULL,
  jid          TEXT NOT NULL,
  channel      TEXT NOT NULL,
  external_id  TEXT,
  sender       TEXT NOT NULL,
  sender_name  TEXT NOT NULL,
  text         TEXT NOT NULL,
  calls        INTEGER NOT NULL,
  status       TEXT NOT NULL,
  run_id       TEXT,
  created_at   INTEGER NOT NULL
);
CREATE UNIQUE INDEX incoming_external ON incoming (channel, jid, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX incoming_group ON incoming (group_folder);
CREATE INDEX incoming_waiting ON incoming (group_folder) WHERE status = 'waiting';
CREATE INDEX incoming_context ON incoming (group_folder) WHERE status = 'context';
CREATE INDEX incoming_given ON incoming (run_id) WHERE status = 'given';

-- `seq` is the order in which they began; transcripts refer to it, as ids are long.
CREATE TABLE runs (
  seq           INTEGER PRIMARY KEY,
  id            TEXT NOT NULL UNIQUE,
  group_folder  TEXT NOT NULL,
  kind          TEXT NOT NULL,
  task_id       TEXT,
  occurrence_id TEXT,
  sandbox       TEXT NOT NULL,
  driver        TEXT NOT NULL,
  session_id    TEXT,
  status        TEXT NOT NULL,
  started_at    INTEGER NOT NULL,
  ended_at      INTEGER,
  result        TEXT,
  error         TEXT
);
CREATE INDEX runs_group ON runs (group_folder);
CREATE INDEX runs_task ON runs (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX runs_running ON runs (status) WHERE status = 'running';

CREATE TABLE steps (
  id   INTEGER PRIMARY KEY,
  run  INTEGER NOT NULL,
  at   INTEGER NOT NULL,
  kind TEXT NOT NULL,
  name TEXT,
  text TEXT NOT NULL
);
CREATE INDEX steps_run ON steps (run);

CREATE TABLE sessions (
  group_folder TEXT PRIMARY KEY,
  session_id   TEXT NOT NULL
) WITHOUT ROWID;

-- An id says which task and which time: one that was claimed cannot be claimed again (lesson 27).
CREATE TABLE occurrences (
  seq          INTEGER PRIMARY KEY,
  id           TEXT NOT NULL UNIQUE,
  task_id      TEXT NOT NULL,
  group_folder TEXT NOT NULL,
  due_at       INTEGER NOT NULL,
  manual       INTEGER NOT NULL,
  status       TEXT NOT NULL,
  run_id       TEXT,
  claimed_at   INTEGER NOT NULL,
  started_at   INTEGER,
  ended_at     INTEGER,
  result       TEXT,
  error        TEXT
);
CREATE INDEX occurrences_task ON occurrences (task_id);
CREATE INDEX occurrences_open ON occurrences (status) WHERE status IN ('claimed', 'running');

-- `day` is a date in UTC.
CREATE TABLE usage (
  group_folder  TEXT NOT NULL,
  day           TEXT NOT NULL,
  model         TEXT NOT NULL,
  requests      INTEGER NOT NULL,
  input_tokens  INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  PRIMARY KEY (group_folder, day, model)
) WITHOUT ROWID;
