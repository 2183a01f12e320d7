-- Browsers that are let in. `id_hash` is of what their cookie says, which is kept nowhere; `credential` is of what let
-- them in: when that changes, they are out. `claims` are what an OpenID Connect provider said, as a JSON list.
CREATE TABLE web_sessions (
  id          TEXT PRIMARY KEY,
  id_hash     TEXT NOT NULL UNIQUE,
  way         TEXT NOT NULL,
  name        TEXT NOT NULL,
  credential  TEXT NOT NULL,
  claims      TEXT NOT NULL,
  address     TEXT NOT NULL,
  browser     TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  seen_at     INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL
);
