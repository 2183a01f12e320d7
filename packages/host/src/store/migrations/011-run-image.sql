-- The image a run really used; NULL where it ran on the host's own programs, and for runs of earlier versions.
ALTER TABLE runs ADD COLUMN image TEXT;
