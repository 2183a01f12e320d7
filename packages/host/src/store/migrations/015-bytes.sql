-- What open tasks, open requests and large messages hold in bytes: the limits on them read sums from these indexes alone.
DROP INDEX tasks_open;
CREATE INDEX tasks_open ON tasks (
  group_folder,
  status,
  octet_length(prompt) + coalesce(octet_length(script), 0) + coalesce(octet_length(job), 0)
) WHERE status IN ('active', 'paused');

DROP INDEX requests_group;
CREATE INDEX requests_group ON requests (group_folder, status, octet_length(input));

-- Most messages are short, and their number is limited; those are not in it.
CREATE INDEX messages_large ON messages (
  group_folder,
  id,
  octet_length(text) + coalesce(octet_length(speech), 0)
) WHERE octet_length(text) + coalesce(octet_length(speech), 0) > 1024;

-- What a task that is over was to do is cut; these are left to be.
CREATE INDEX tasks_over_large ON tasks (id)
WHERE status NOT IN ('active', 'paused') AND octet_length(prompt) + coalesce(octet_length(script), 0) > 4096;
