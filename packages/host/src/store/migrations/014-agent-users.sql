-- The user that a folder's runs have where the host is root. It stays with the folder, also when its group is
-- unregistered, and is never given to another one: files of that user may still be there. The first is chosen at random,
-- so that two installations on one machine rarely share users. systemd's list of ranges has this one as free.
CREATE TABLE agent_users (
  folder TEXT PRIMARY KEY COLLATE NOCASE,
  uid    INTEGER NOT NULL UNIQUE
);
INSERT INTO meta (key, value) VALUES ('first_agent_user', 1879048192 + abs(random() % 200000000));
INSERT INTO agent_users (folder, uid)
  SELECT folder, (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'first_agent_user')
    + row_number() OVER (ORDER BY added_at, folder)
  FROM groups;
CREATE TRIGGER groups_user AFTER INSERT ON groups BEGIN
  INSERT OR IGNORE INTO agent_users (folder, uid) VALUES (new.folder, 1 + coalesce(
    (SELECT max(uid) FROM agent_users), (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'first_agent_user')));
END;
