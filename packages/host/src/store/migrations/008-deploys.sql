-- Restarts with other code. `request` is the number of the agent's request; null: an operator asked.
-- `branch` is what was checked out; null: a revision without one.
CREATE TABLE deploys (
  id            INTEGER PRIMARY KEY,
  request       INTEGER UNIQUE,
  group_folder  TEXT,
  is_answered   INTEGER NOT NULL,
  from_revision TEXT NOT NULL,
  to_revision   TEXT NOT NULL,
  branch        TEXT,
  rebuild       INTEGER NOT NULL,
  resume_prompt TEXT,
  session_id    TEXT,
  status        TEXT NOT NULL,
  code          TEXT,
  error         TEXT,
  created_at    INTEGER NOT NULL,
  ended_at      INTEGER
);
CREATE INDEX deploys_open ON deploys (id) WHERE ended_at IS NULL;
