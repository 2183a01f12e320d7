-- What a rule allows: exactly what was in the action, or the tool whatever it is called with.
ALTER TABLE approval_rules ADD COLUMN scope TEXT NOT NULL DEFAULT 'exact';
