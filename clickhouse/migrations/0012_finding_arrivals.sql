-- Findings by when they arrived: lists that stay as they are while data comes in, counts over time, and how many traces
-- and sessions a finding was seen in.
--
-- Two times of arrival are told apart. `received_at` is the edge's. `stored_at` is that of the insert: what a reader found
-- stored at one moment is told by it, received_at is not (a payload may wait in Redis for an hour).

-- Run it while no workers do: an insert that has begun before a step and ends after it would be in some of the tables.

-- 1970 for rows that were there before the views below: they are counted once, by the backfill at the end. They get it
-- written down (MATERIALIZE COLUMN, run again, would write over what came later), then new rows get the time of their
-- insert.
ALTER TABLE exceptions ADD COLUMN IF NOT EXISTS stored_at DateTime64(3, 'UTC') DEFAULT toDateTime64(0, 3, 'UTC') CODEC(Delta, LZ4);
ALTER TABLE exceptions UPDATE stored_at = toDateTime64(0, 3, 'UTC') WHERE toUnixTimestamp64Milli(stored_at) = 0
SETTINGS mutations_sync = 2;

-- latest: the latest occurrence by stored_at, then received_at; its text is what a search looks through. It is cut: a
--   search reads that of every finding and day, and messages have up to 8 KiB.
-- first_received_at, last_received_at: whether anything of the day was received in a time that ends on another day.
-- traces, sessions: 12 KB at most each, 1 % off where there are many.
-- by_stored_at: a list begins with what was stored last, and most days have nothing of that.
ALTER TABLE findings
  ADD COLUMN IF NOT EXISTS latest SimpleAggregateFunction(max, Tuple(stored_at DateTime64(3, 'UTC'), received_at DateTime64(3, 'UTC'), text String)),
  ADD COLUMN IF NOT EXISTS first_received_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) DEFAULT toDateTime64('2299-12-31 00:00:00', 3, 'UTC'),
  ADD COLUMN IF NOT EXISTS last_received_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  ADD COLUMN IF NOT EXISTS traces AggregateFunction(uniqCombined(14), Nullable(FixedString(16))),
  ADD COLUMN IF NOT EXISTS sessions AggregateFunction(uniqCombined(14), Nullable(String)),
  ADD COLUMN IF NOT EXISTS service_versions AggregateFunction(groupUniqArray(20), String),
  ADD INDEX IF NOT EXISTS by_stored_at latest.stored_at TYPE minmax GRANULARITY 1;

ALTER TABLE findings_from_exceptions MODIFY QUERY
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  anyLast(exceptions.surface_id) AS surface_id,
  anyLast(exceptions.service_name) AS service_name,
  argMaxState(exceptions.type, occurred_at_unix_nano) AS type,
  argMaxState(exceptions.message, occurred_at_unix_nano) AS message,
  min(occurred_at_unix_nano) AS first_seen_unix_nano,
  max(occurred_at_unix_nano) AS last_seen_unix_nano,
  count() AS occurrence_count,
  max(tuple(if(toUnixTimestamp64Milli(stored_at) = 0, received_at, stored_at), received_at,
    leftUTF8(concat(exceptions.type, '\n', exceptions.message), 1000))) AS latest,
  min(received_at) AS first_received_at,
  max(received_at) AS last_received_at,
  uniqCombinedState(14)(nullIf(trace_id, toFixedString('', 16))) AS traces,
  uniqCombinedState(14)(nullIf(session_id, '')) AS sessions,
  groupUniqArrayState(20)(toString(service_version)) AS service_versions
FROM exceptions
GROUP BY day, workspace_id, finding_id;

-- When a finding first arrived in a trace: it stays, whatever else arrives, so lists of traces are in its order.
ALTER TABLE finding_traces
  ADD COLUMN IF NOT EXISTS first_arrival SimpleAggregateFunction(min, Tuple(stored_at DateTime64(3, 'UTC'), received_at DateTime64(3, 'UTC')))
  DEFAULT tuple(toDateTime64('2299-12-31 00:00:00', 3, 'UTC'), toDateTime64('2299-12-31 00:00:00', 3, 'UTC'));

-- Whether a finding occurred in a trace is asked with every read of a trace: as for spans (0007), one part is read of all.
ALTER TABLE finding_traces ADD INDEX IF NOT EXISTS by_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 1;
ALTER TABLE finding_traces MATERIALIZE INDEX by_trace_id SETTINGS mutations_sync = 0;

ALTER TABLE finding_traces_from_exceptions MODIFY QUERY
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  trace_id,
  max(occurred_at_unix_nano) AS last_seen_unix_nano,
  count() AS occurrence_count,
  min(tuple(if(toUnixTimestamp64Milli(stored_at) = 0, received_at, stored_at), received_at)) AS first_arrival
FROM exceptions
GROUP BY day, workspace_id, finding_id, trace_id;

-- Every insert of exceptions as a row per finding. It is never merged into other rows, and its block number, which grows
-- with every part in the moment in which the part is seen, says exactly what a reader saw of it. Lists of findings need
-- what was stored in the last minutes before their first page, and cursors live for a day.
CREATE TABLE IF NOT EXISTS finding_arrivals
(
  workspace_id LowCardinality(String),
  stored_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  finding_id FixedString(30),
  surface_id LowCardinality(String),
  service_name LowCardinality(String),
  latest Tuple(stored_at DateTime64(3, 'UTC'), received_at DateTime64(3, 'UTC'), text String) CODEC(ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toDate(stored_at)
ORDER BY (workspace_id, stored_at, finding_id)
TTL stored_at + INTERVAL 48 HOUR
SETTINGS ttl_only_drop_parts = 1, enable_block_number_column = 1, non_replicated_deduplication_window = 1000000;

CREATE MATERIALIZED VIEW IF NOT EXISTS finding_arrivals_from_exceptions TO finding_arrivals AS
SELECT
  workspace_id,
  stored_at,
  finding_id,
  anyLast(exceptions.surface_id) AS surface_id,
  anyLast(exceptions.service_name) AS service_name,
  max(tuple(stored_at, received_at, leftUTF8(concat(type, '\n', message), 1000))) AS latest
FROM exceptions
WHERE toUnixTimestamp64Milli(stored_at) != 0
GROUP BY workspace_id, stored_at, finding_id;

-- Occurrences by five minutes of arrival: whatever their rate, a finding has 288 rows a day, and a few more where
-- stored_at lags behind. ORDER BY: lists ask for all findings of some hours, graphs for one finding of all hours: hours
-- before findings, in granules of 64 rows, bound both.
CREATE TABLE IF NOT EXISTS finding_buckets
(
  day Date,
  workspace_id LowCardinality(String),
  finding_id FixedString(30),
  received_bucket DateTime('UTC') CODEC(Delta, LZ4),
  stored_bucket DateTime('UTC') CODEC(Delta, LZ4),
  surface_id SimpleAggregateFunction(anyLast, LowCardinality(String)),
  service_name SimpleAggregateFunction(anyLast, LowCardinality(String)),
  first_received_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) CODEC(Delta, LZ4),
  last_received_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) CODEC(Delta, LZ4),
  occurrence_count SimpleAggregateFunction(sum, UInt64),
  latest SimpleAggregateFunction(max, Tuple(stored_at DateTime64(3, 'UTC'), received_at DateTime64(3, 'UTC'), text String)) CODEC(ZSTD(1)),
  INDEX by_stored_at latest.stored_at TYPE minmax GRANULARITY 16
)
ENGINE = AggregatingMergeTree
PARTITION BY day
PRIMARY KEY (workspace_id, toStartOfHour(received_bucket), finding_id)
ORDER BY (workspace_id, toStartOfHour(received_bucket), finding_id, received_bucket, stored_bucket)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS index_granularity = 64, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 1000000;

CREATE MATERIALIZED VIEW IF NOT EXISTS finding_buckets_from_exceptions TO finding_buckets AS
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  toStartOfFiveMinutes(received_at) AS received_bucket,
  toStartOfFiveMinutes(stored_at) AS stored_bucket,
  anyLast(exceptions.surface_id) AS surface_id,
  anyLast(exceptions.service_name) AS service_name,
  min(received_at) AS first_received_at,
  max(received_at) AS last_received_at,
  count() AS occurrence_count,
  max(tuple(stored_at, received_at, leftUTF8(concat(type, '\n', message), 1000))) AS latest
FROM exceptions
WHERE toUnixTimestamp64Milli(stored_at) != 0
GROUP BY day, workspace_id, finding_id, received_bucket, stored_bucket;

ALTER TABLE exceptions MODIFY COLUMN stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, LZ4);

-- What was there before. Run again, it leaves the same: counts are cleared first, all else is minima, maxima and sets.
ALTER TABLE finding_buckets DELETE WHERE toUnixTimestamp(stored_bucket) = 0 SETTINGS mutations_sync = 2;

INSERT INTO finding_buckets
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  toStartOfFiveMinutes(received_at) AS received_bucket,
  toDateTime(0, 'UTC') AS stored_bucket,
  anyLast(exceptions.surface_id) AS surface_id,
  anyLast(exceptions.service_name) AS service_name,
  min(received_at) AS first_received_at,
  max(received_at) AS last_received_at,
  count() AS occurrence_count,
  max(tuple(received_at, received_at, leftUTF8(concat(type, '\n', message), 1000))) AS latest
FROM exceptions
WHERE toUnixTimestamp64Milli(stored_at) = 0
GROUP BY day, workspace_id, finding_id, received_bucket
SETTINGS insert_deduplicate = 0, max_partitions_per_insert_block = 0;

INSERT INTO findings
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  anyLast(exceptions.surface_id) AS surface_id,
  anyLast(exceptions.service_name) AS service_name,
  argMaxState(exceptions.type, occurred_at_unix_nano) AS type,
  argMaxState(exceptions.message, occurred_at_unix_nano) AS message,
  min(occurred_at_unix_nano) AS first_seen_unix_nano,
  max(occurred_at_unix_nano) AS last_seen_unix_nano,
  0 AS occurrence_count,
  max(tuple(received_at, received_at, leftUTF8(concat(exceptions.type, '\n', exceptions.message), 1000))) AS latest,
  min(exceptions.received_at) AS first_received_at,
  max(exceptions.received_at) AS last_received_at,
  uniqCombinedState(14)(nullIf(trace_id, toFixedString('', 16))) AS traces,
  uniqCombinedState(14)(nullIf(session_id, '')) AS sessions,
  groupUniqArrayState(20)(toString(service_version)) AS service_versions
FROM exceptions
WHERE toUnixTimestamp64Milli(stored_at) = 0
GROUP BY day, workspace_id, finding_id
SETTINGS insert_deduplicate = 0, max_partitions_per_insert_block = 0;

INSERT INTO finding_traces
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  trace_id,
  max(occurred_at_unix_nano) AS last_seen_unix_nano,
  0 AS occurrence_count,
  min(tuple(received_at, received_at)) AS first_arrival
FROM exceptions
WHERE toUnixTimestamp64Milli(stored_at) = 0
GROUP BY day, workspace_id, finding_id, trace_id
SETTINGS insert_deduplicate = 0, max_partitions_per_insert_block = 0;
