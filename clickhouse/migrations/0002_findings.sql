-- Exceptions, and the findings that they are occurrences of.
--
-- Two times of arrival are told apart. `received_at` is the edge's. `stored_at` is that of the insert: what a reader found
-- stored at one moment is told by it, received_at is not (a payload may wait in Redis for an hour).
--
-- occurred_at_unix_nano is the time that the client states. A time far in the future would be the latest one until the
-- finding expires, so for the views (seen_unix_nano) it counts as five minutes after the arrival at most.
--
-- The views are created with their final query and never altered: ClickHouse derives the deduplication token of a view's rows
-- in another way after MODIFY QUERY, until the server restarts (clickhouse/README.md).

-- One row per occurrence of an exception, filled by workers/exceptions/.
-- by_trace_id: the spans of a trace name the findings of their exceptions. As for spans, few parts have the trace.
-- debug_ids: script URL → debug id (a lower-case UUID), where the client has said which build of its scripts threw.
CREATE TABLE IF NOT EXISTS exceptions
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  finding_id FixedString(30),
  trace_id FixedString(16),
  span_id FixedString(8),
  occurred_at_unix_nano UInt64,
  service_name LowCardinality(String),
  service_version LowCardinality(String),
  session_id String,
  source Enum8('span_event' = 1, 'log_record' = 2, 'span_status' = 3),
  type String,
  message String CODEC(ZSTD(1)),
  stacktrace String CODEC(ZSTD(1)),
  span_name String,
  escaped Bool,
  debug_ids Map(String, String),
  stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, LZ4),
  INDEX by_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, finding_id, received_at)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- What lists of findings are read from, a row per day of arrival: reads group by finding_id. All of it is of the occurrences
-- that are retained, and expires with them.
--
-- latest: the latest occurrence by stored_at, then received_at. A search looks through its text, which is cut: a search reads
--   that of every finding and day, and messages have up to 8 KiB.
-- first_received_at, last_received_at: whether anything of the day was received in a time that ends on another day.
-- by_stored_at: a list begins with what was stored last, and most days have nothing of that.
CREATE TABLE IF NOT EXISTS findings
(
  day Date,
  workspace_id LowCardinality(String),
  finding_id FixedString(30),
  surface_id SimpleAggregateFunction(anyLast, String),
  service_name SimpleAggregateFunction(anyLast, String),
  first_seen_unix_nano SimpleAggregateFunction(min, UInt64),
  last_seen_unix_nano SimpleAggregateFunction(max, UInt64),
  occurrence_count SimpleAggregateFunction(sum, UInt64),
  latest SimpleAggregateFunction(max, Tuple(stored_at DateTime64(3, 'UTC'), received_at DateTime64(3, 'UTC'), text String)),
  first_received_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')),
  last_received_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  INDEX by_stored_at latest.stored_at TYPE minmax GRANULARITY 1
)
ENGINE = AggregatingMergeTree
PARTITION BY day
ORDER BY (workspace_id, finding_id)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS findings_from_exceptions TO findings AS
WITH least(occurred_at_unix_nano, toUInt64(toUnixTimestamp64Milli(received_at) + 300000) * 1000000) AS seen_unix_nano
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  anyLast(exceptions.surface_id) AS surface_id,
  anyLast(exceptions.service_name) AS service_name,
  min(seen_unix_nano) AS first_seen_unix_nano,
  max(seen_unix_nano) AS last_seen_unix_nano,
  count() AS occurrence_count,
  max(tuple(stored_at, received_at, leftUTF8(concat(type, '\n', message), 1000))) AS latest,
  min(received_at) AS first_received_at,
  max(received_at) AS last_received_at
FROM exceptions
GROUP BY day, workspace_id, finding_id;

-- What is shown of few findings at a time: type and message, the versions that threw it, and in how many traces and sessions
-- it was seen (sketches of 12 KB at most, 1 % off where there are many). A row per finding and day, as in `findings`. Reading a
-- column reads a granule, whose states must all be built to read those of one finding: of `findings` 8,192 rows of a day, here 32.
--
-- A row that is stored twice changes nothing, because sets, sketches and maxima have no duplicates. So the table needs no
-- deduplication window.
CREATE TABLE IF NOT EXISTS finding_details
(
  day Date,
  workspace_id LowCardinality(String),
  finding_id FixedString(30),
  type AggregateFunction(argMax, String, UInt64),
  message AggregateFunction(argMax, String, UInt64),
  service_versions AggregateFunction(groupUniqArray(20), String),
  traces AggregateFunction(uniqCombined(14), Nullable(FixedString(16))),
  sessions AggregateFunction(uniqCombined(14), Nullable(String))
)
ENGINE = AggregatingMergeTree
PARTITION BY day
ORDER BY (workspace_id, finding_id)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS index_granularity = 32, ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS finding_details_from_exceptions TO finding_details AS
WITH least(occurred_at_unix_nano, toUInt64(toUnixTimestamp64Milli(received_at) + 300000) * 1000000) AS seen_unix_nano
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  argMaxState(exceptions.type, seen_unix_nano) AS type,
  argMaxState(exceptions.message, seen_unix_nano) AS message,
  groupUniqArrayState(20)(toString(service_version)) AS service_versions,
  uniqCombinedState(14)(nullIf(trace_id, toFixedString('', 16))) AS traces,
  uniqCombinedState(14)(nullIf(session_id, '')) AS sessions
FROM exceptions
GROUP BY day, workspace_id, finding_id;

-- In which traces a finding occurred, a row per day of arrival.
--
-- first_arrival: when a finding first arrived in a trace. It stays, whatever else arrives, so lists of traces are in its order.
-- by_trace_id: whether a finding occurred in a trace is asked with every read of a trace. As for spans, one part is read of all.
CREATE TABLE IF NOT EXISTS finding_traces
(
  day Date,
  workspace_id LowCardinality(String),
  finding_id FixedString(30),
  trace_id FixedString(16),
  last_seen_unix_nano SimpleAggregateFunction(max, UInt64),
  occurrence_count SimpleAggregateFunction(sum, UInt64),
  first_arrival SimpleAggregateFunction(min, Tuple(stored_at DateTime64(3, 'UTC'), received_at DateTime64(3, 'UTC'))),
  INDEX by_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = AggregatingMergeTree
PARTITION BY day
ORDER BY (workspace_id, finding_id, trace_id)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS finding_traces_from_exceptions TO finding_traces AS
WITH least(occurred_at_unix_nano, toUInt64(toUnixTimestamp64Milli(received_at) + 300000) * 1000000) AS seen_unix_nano
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  trace_id,
  max(seen_unix_nano) AS last_seen_unix_nano,
  count() AS occurrence_count,
  min(tuple(stored_at, received_at)) AS first_arrival
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
SETTINGS ttl_only_drop_parts = 1, enable_block_number_column = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS finding_arrivals_from_exceptions TO finding_arrivals AS
SELECT
  workspace_id,
  stored_at,
  finding_id,
  anyLast(exceptions.surface_id) AS surface_id,
  anyLast(exceptions.service_name) AS service_name,
  max(tuple(stored_at, received_at, leftUTF8(concat(type, '\n', message), 1000))) AS latest
FROM exceptions
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
SETTINGS index_granularity = 64, ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

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
GROUP BY day, workspace_id, finding_id, received_bucket, stored_bucket;
