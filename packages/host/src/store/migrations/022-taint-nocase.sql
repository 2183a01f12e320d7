-- Folders are told apart without case, as some file systems do: `Work` has the files that `work` had, and so has it the
-- taint. Ids in contexts are told apart as they are.
DROP TRIGGER tasks_forgotten;
CREATE TEMP TABLE taints_before AS SELECT * FROM taints;
DROP TABLE taints;
CREATE TABLE taints (
  group_folder TEXT NOT NULL COLLATE NOCASE,
  context      TEXT NOT NULL,
  corrupted_at INTEGER,
  corrupted_by TEXT,
  secret_at    INTEGER,
  secret_by    TEXT,
  PRIMARY KEY (group_folder, context)
) WITHOUT ROWID;
INSERT INTO taints SELECT * FROM taints_before WHERE true
  ON CONFLICT DO UPDATE SET
    corrupted_at = coalesce(corrupted_at, excluded.corrupted_at),
    corrupted_by = coalesce(corrupted_by, excluded.corrupted_by),
    secret_at = coalesce(secret_at, excluded.secret_at),
    secret_by = coalesce(secret_by, excluded.secret_by);
DROP TABLE taints_before;
CREATE TRIGGER tasks_forgotten AFTER DELETE ON tasks BEGIN
  DELETE FROM taints WHERE group_folder = old.group_folder AND context IN ('task:' || old.id, 'result:' || old.id);
END;

-- When a folder was last wiped is kept under its name in lower case.
CREATE TEMP TABLE wiped_before AS
  SELECT lower(key) AS key, max(CAST(value AS INTEGER)) AS value FROM meta WHERE key GLOB 'wiped *' GROUP BY lower(key);
DELETE FROM meta WHERE key GLOB 'wiped *';
INSERT INTO meta (key, value) SELECT key, value FROM wiped_before;
DROP TABLE wiped_before;
