-- One file holds the memories of one group.

CREATE TABLE about (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID, STRICT;

-- Kept with every change, because counting a hundred thousand rows for each new one is too slow.
CREATE TABLE totals (
  memories INTEGER NOT NULL,
  bytes INTEGER NOT NULL
) STRICT;
INSERT INTO totals VALUES (0, 0);

CREATE TABLE memories (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  category TEXT NOT NULL,
  -- the category as it is compared: without case and accents
  category_key TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  -- last, so that a long one is not read on the way to another column
  content TEXT NOT NULL
) STRICT;
CREATE INDEX memories_newest ON memories (updated_at, id);
CREATE INDEX memories_newest_of_category ON memories (category_key, updated_at, id);

-- Which memory has which word. The words are made by words.ts; the tokeniser only parts them at spaces.
CREATE VIRTUAL TABLE word_index USING fts5(key, content, tokenize = 'ascii', content = '', contentless_delete = 1);

-- Each word there is, with the number of memories that have it.
CREATE TABLE words (
  id INTEGER PRIMARY KEY,
  word TEXT NOT NULL UNIQUE,
  memories INTEGER NOT NULL
) STRICT;

-- Which word has which three letters in a row, to find words inside words.
CREATE VIRTUAL TABLE word_parts USING fts5(
  word, tokenize = 'trigram case_sensitive 1', content = '', contentless_delete = 1
);
