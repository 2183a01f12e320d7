-- Large answers that are kept for whoever asks again: the limit on them reads sums from this index alone.
CREATE INDEX requests_placed ON requests (group_folder, seq, octet_length(outcome)) WHERE status = 'placed';

-- Questions and approvals hold what an agent wrote once more: large ones go with the messages that told people of them.
CREATE INDEX questions_large ON questions (message_id) WHERE status <> 'open' AND octet_length(questions) > 1024;
CREATE INDEX approvals_large ON approvals (message_id) WHERE status <> 'open' AND octet_length(action) > 1024;

-- What is written down of a run, in bytes, so that nobody has to add it up.
ALTER TABLE runs ADD COLUMN transcript_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE runs SET transcript_bytes = (SELECT coalesce(sum(octet_length(text)), 0) FROM steps WHERE run = runs.seq);
