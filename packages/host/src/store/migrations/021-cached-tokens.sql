-- Of the input tokens, those that the provider had in its cache: they cost less.
ALTER TABLE usage ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
