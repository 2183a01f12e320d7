-- What the guard decided, and why. Each row's `hash` is the SHA-256 over the hash before it and the row itself, as
-- docs/audit.md says to the letter. The triggers keep everybody who does not remove them from changing what is written.
CREATE TABLE audit (
  seq          INTEGER PRIMARY KEY,
  at           INTEGER NOT NULL,
  group_folder TEXT,
  actor        TEXT NOT NULL,
  action       TEXT NOT NULL,
  summary      TEXT NOT NULL,
  taint        TEXT,
  gate         TEXT,
  verdict      TEXT,
  decided_by   TEXT,
  reason       TEXT,
  took_ms      INTEGER,
  outcome      TEXT NOT NULL,
  request_id   TEXT,
  details      TEXT,
  hash         TEXT NOT NULL
) STRICT;

-- One row: the last entry that was removed because of its age. The chain goes on from its hash.
CREATE TABLE audit_anchor (
  seq  INTEGER NOT NULL,
  hash TEXT NOT NULL,
  at   INTEGER
) STRICT;
INSERT INTO audit_anchor VALUES (0, '0000000000000000000000000000000000000000000000000000000000000000', NULL);

CREATE TRIGGER audit_only_next BEFORE INSERT ON audit
WHEN NEW.seq IS NOT 1 + coalesce((SELECT max(seq) FROM audit), (SELECT seq FROM audit_anchor), 0)
BEGIN
  SELECT RAISE(ABORT, 'an audit entry can only be added at the end');
END;
CREATE TRIGGER audit_no_change BEFORE UPDATE ON audit
BEGIN
  SELECT RAISE(ABORT, 'an audit entry cannot be changed');
END;
CREATE TRIGGER audit_no_removal BEFORE DELETE ON audit
WHEN OLD.seq > coalesce((SELECT seq FROM audit_anchor), 0)
BEGIN
  SELECT RAISE(ABORT, 'an audit entry is only removed up to the anchor');
END;
CREATE TRIGGER audit_anchor_forward BEFORE UPDATE ON audit_anchor
WHEN NEW.seq <= OLD.seq OR NOT EXISTS (SELECT 1 FROM audit WHERE seq = NEW.seq AND hash = NEW.hash)
BEGIN
  SELECT RAISE(ABORT, 'the audit anchor only moves on to an entry');
END;
CREATE TRIGGER audit_anchor_alone BEFORE INSERT ON audit_anchor
BEGIN
  SELECT RAISE(ABORT, 'there is one audit anchor');
END;
CREATE TRIGGER audit_anchor_stays BEFORE DELETE ON audit_anchor
BEGIN
  SELECT RAISE(ABORT, 'the audit anchor cannot be removed');
END;
