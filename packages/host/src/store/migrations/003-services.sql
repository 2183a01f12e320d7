-- Requests whose answer follows: asked of a service, or of people. `seq` is the command's number in the journal. A row
-- goes once its answer lies in the group's directory; one with a large answer stays for a while instead of the journal.
CREATE TABLE requests (
  seq          INTEGER PRIMARY KEY,
  group_folder TEXT NOT NULL,
  kind         TEXT NOT NULL,
  tool         TEXT NOT NULL,
  input        TEXT NOT NULL,
  reply        TEXT,
  status       TEXT NOT NULL,
  outcome      TEXT,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  answered_at  INTEGER
);
CREATE INDEX requests_group ON requests (group_folder);

-- What people were asked, by the request that asks it. Kept when it is over, for whoever looks at the chat later.
CREATE TABLE questions (
  seq          INTEGER PRIMARY KEY,
  group_folder TEXT NOT NULL,
  jid          TEXT NOT NULL,
  message_id   INTEGER NOT NULL UNIQUE,
  questions    TEXT NOT NULL,
  answers      TEXT NOT NULL,
  status       TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL,
  closed_at    INTEGER
);
CREATE INDEX questions_open ON questions (jid) WHERE status = 'open';

CREATE TABLE todos (
  group_folder TEXT NOT NULL,
  id           TEXT NOT NULL,
  content      TEXT NOT NULL,
  done         INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  done_at      INTEGER,
  PRIMARY KEY (group_folder, id)
);
