-- A message that shows an agent at work is replaced by the answer: `replaces` names it.
ALTER TABLE messages ADD COLUMN replaces INTEGER;
CREATE INDEX messages_progress ON messages (group_folder, id) WHERE kind = 'progress';
CREATE INDEX messages_replaces ON messages (replaces) WHERE replaces IS NOT NULL;
