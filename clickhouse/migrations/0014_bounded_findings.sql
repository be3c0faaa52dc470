-- Findings that a client cannot pin to its own text, and states that it cannot make grow.
--
-- occurred_at_unix_nano is the time that the client states. A time far in the future would be the latest one until the
-- finding expires, so it counts as five minutes after the arrival at most. `exceptions` keeps the time as stated.
-- service_version is cut for workers of before: newer ones cut it themselves.
-- Rows that are there stay as they are. Queries read old and new rows alike.
ALTER TABLE findings_from_exceptions MODIFY QUERY
WITH least(occurred_at_unix_nano, toUInt64(toUnixTimestamp64Milli(received_at) + 300000) * 1000000) AS seen_unix_nano
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  anyLast(exceptions.surface_id) AS surface_id,
  anyLast(exceptions.service_name) AS service_name,
  argMaxState(exceptions.type, seen_unix_nano) AS type,
  argMaxState(exceptions.message, seen_unix_nano) AS message,
  min(seen_unix_nano) AS first_seen_unix_nano,
  max(seen_unix_nano) AS last_seen_unix_nano,
  count() AS occurrence_count,
  max(tuple(if(toUnixTimestamp64Milli(stored_at) = 0, received_at, stored_at), received_at,
    leftUTF8(concat(exceptions.type, '\n', exceptions.message), 1000))) AS latest,
  min(received_at) AS first_received_at,
  max(received_at) AS last_received_at,
  uniqCombinedState(14)(nullIf(trace_id, toFixedString('', 16))) AS traces,
  uniqCombinedState(14)(nullIf(session_id, '')) AS sessions,
  groupUniqArrayState(20)(leftUTF8(toString(service_version), 256)) AS service_versions
FROM exceptions
GROUP BY day, workspace_id, finding_id;

ALTER TABLE finding_traces_from_exceptions MODIFY QUERY
WITH least(occurred_at_unix_nano, toUInt64(toUnixTimestamp64Milli(received_at) + 300000) * 1000000) AS seen_unix_nano
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  trace_id,
  max(seen_unix_nano) AS last_seen_unix_nano,
  count() AS occurrence_count,
  min(tuple(if(toUnixTimestamp64Milli(stored_at) = 0, received_at, stored_at), received_at)) AS first_arrival
FROM exceptions
GROUP BY day, workspace_id, finding_id, trace_id;

ALTER TABLE session_findings_from_exceptions MODIFY QUERY
WITH least(occurred_at_unix_nano, toUInt64(toUnixTimestamp64Milli(received_at) + 300000) * 1000000) AS seen_unix_nano
SELECT
  toDate(received_at) AS day,
  workspace_id,
  session_id,
  finding_id,
  max(seen_unix_nano) AS last_seen_unix_nano,
  count() AS occurrence_count
FROM exceptions
WHERE session_id != ''
GROUP BY day, workspace_id, session_id, finding_id;

-- The status 0 was not stored before. 0 still means no status, so that rows of before stay right.
ALTER TABLE spans COMMENT COLUMN http_status_code '0: no status; 65535: the status 0';
