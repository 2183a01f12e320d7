-- Files that people and agents have sent, copied out of the sender's reach. `id` names the copy below files/. `message`
-- is the one it goes along with, in `messages` or `incoming` as its direction says; null: it was not said yet.
CREATE TABLE files (
  id           TEXT PRIMARY KEY,
  group_folder TEXT NOT NULL,
  jid          TEXT NOT NULL,
  direction    TEXT NOT NULL,
  message      INTEGER,
  name         TEXT NOT NULL,
  type         TEXT NOT NULL,
  bytes        INTEGER NOT NULL,
  created_at   INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX files_group ON files (group_folder, created_at);

-- A list of {id, name, type, bytes} as JSON; those that are no longer kept are `gone`.
ALTER TABLE messages ADD COLUMN attachments TEXT;
ALTER TABLE incoming ADD COLUMN attachments TEXT;
