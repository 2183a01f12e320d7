-- Whose words a message is. What the host itself says may hold a stranger's name, such as that of somebody who asks to be
-- let in: no agent is told it as its own words. Of older messages it is known of cards, what changes them, and of those
-- requests.
ALTER TABLE messages ADD COLUMN author TEXT NOT NULL DEFAULT 'agent';
UPDATE messages SET author = 'host' WHERE kind IN ('approval', 'edit', 'progress')
  OR (kind = 'text' AND text LIKE '%asks to talk to me%To let them in, write: pair %To refuse, write: refuse %');
