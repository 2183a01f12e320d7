-- What a group has read hangs on its folder and home: the row `session` now stands for these. Runs with a session of
-- their own wrote the same files, and so did whoever laid down instructions.
INSERT INTO taints
  SELECT group_folder, 'session', min(corrupted_at), min(corrupted_by), min(secret_at), min(secret_by) FROM taints
  WHERE context LIKE 'run:%' OR context = 'given' GROUP BY group_folder
  ON CONFLICT DO UPDATE SET
    corrupted_at = coalesce(corrupted_at, excluded.corrupted_at),
    corrupted_by = coalesce(corrupted_by, excluded.corrupted_by),
    secret_at = coalesce(secret_at, excluded.secret_at),
    secret_by = coalesce(secret_by, excluded.secret_by);
DELETE FROM taints WHERE context LIKE 'run:%' OR context = 'given';

-- The last result of a task is a text of its own: others see it. Those that are there already count as read by now.
INSERT INTO taints
  SELECT tasks.group_folder, 'result:' || tasks.id, corrupted_at, corrupted_by, secret_at, secret_by
  FROM tasks JOIN taints ON taints.group_folder = tasks.group_folder AND taints.context = 'session'
  WHERE tasks.last_result IS NOT NULL;
DROP TRIGGER tasks_forgotten;
CREATE TRIGGER tasks_forgotten AFTER DELETE ON tasks BEGIN
  DELETE FROM taints WHERE group_folder = old.group_folder AND context IN ('task:' || old.id, 'result:' || old.id);
END;
