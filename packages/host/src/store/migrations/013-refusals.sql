-- Refused commands that nobody was answered: their group's agent is told with what it is given next, and they go.
CREATE TABLE refusals (
  group_folder TEXT NOT NULL,
  seq          INTEGER NOT NULL,
  type         TEXT,
  code         TEXT NOT NULL,
  message      TEXT NOT NULL,
  PRIMARY KEY (group_folder, seq)
) WITHOUT ROWID;
