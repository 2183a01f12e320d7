-- A command on the host in place of an agent, as JSON; null for the tasks of agents.
ALTER TABLE tasks ADD COLUMN job TEXT;
CREATE INDEX tasks_jobs ON tasks (id) WHERE job IS NOT NULL;

-- How one occurrence of a job ended. `output` is the beginning and the end of what it printed, with a line between
-- them where something is missing; `dropped` counts those bytes.
CREATE TABLE job_runs (
  occurrence_id TEXT PRIMARY KEY,
  task_id       TEXT NOT NULL,
  exit_code     INTEGER,
  signal        TEXT,
  timed_out     INTEGER NOT NULL,
  output        TEXT NOT NULL,
  dropped       INTEGER NOT NULL,
  ended_at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX job_runs_task ON job_runs (task_id);
CREATE TRIGGER job_runs_forgotten AFTER DELETE ON occurrences BEGIN
  DELETE FROM job_runs WHERE occurrence_id = old.id;
END;

-- Agents that were made with their task: asking for one of the same name again changes it.
CREATE TABLE periodic_agents (
  name         TEXT PRIMARY KEY COLLATE NOCASE,
  group_folder TEXT NOT NULL,
  task_id      TEXT NOT NULL
) WITHOUT ROWID;
