-- Tasks that are over, for whoever forgets the oldest of them. What a task was made in is forgotten with it.
CREATE INDEX tasks_over ON tasks (coalesce(last_run, created_at)) WHERE status NOT IN ('active', 'paused');
CREATE TRIGGER tasks_forgotten AFTER DELETE ON tasks BEGIN
  DELETE FROM taints WHERE group_folder = old.group_folder AND context = 'task:' || old.id;
END;

-- For whoever forgets the oldest days.
CREATE INDEX usage_day ON usage (day);
