-- How much of a long message has reached its chat was written into the error, in words, and read back from there.
ALTER TABLE messages ADD COLUMN parts_sent INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN parts_total INTEGER NOT NULL DEFAULT 0;

UPDATE messages
SET parts_sent = CAST(error AS INTEGER), parts_total = CAST(substr(error, instr(error, ' of ') + 4) AS INTEGER)
WHERE status = 'pending' AND error GLOB '[0-9]* of [0-9]* parts were delivered; *';
