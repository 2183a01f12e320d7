-- Threads, answers and the platforms' own ids of what was delivered; chats that channels know; who asks to be let in.

ALTER TABLE messages ADD COLUMN thread TEXT;
ALTER TABLE messages ADD COLUMN reply_to TEXT;
ALTER TABLE messages ADD COLUMN external_ids TEXT;
ALTER TABLE incoming ADD COLUMN thread TEXT;
ALTER TABLE incoming ADD COLUMN quote TEXT;
CREATE INDEX incoming_thread ON incoming (jid) WHERE thread IS NOT NULL;

CREATE TABLE known_chats (
  jid           TEXT PRIMARY KEY,
  channel       TEXT NOT NULL,
  name          TEXT NOT NULL,
  is_group      INTEGER NOT NULL,
  last_activity INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE pairings (
  jid         TEXT PRIMARY KEY,
  channel     TEXT NOT NULL,
  code        TEXT NOT NULL UNIQUE,
  name        TEXT NOT NULL,
  is_group    INTEGER NOT NULL,
  sender      TEXT NOT NULL,
  sender_name TEXT NOT NULL,
  status      TEXT NOT NULL,
  asked_at    INTEGER NOT NULL,
  decided_at  INTEGER,
  decided_by  TEXT
) WITHOUT ROWID;

-- What a channel has to know after a restart, such as how far it has read.
CREATE TABLE channel_memory (
  channel TEXT NOT NULL,
  key     TEXT NOT NULL,
  value   TEXT NOT NULL,
  PRIMARY KEY (channel, key)
) WITHOUT ROWID;
