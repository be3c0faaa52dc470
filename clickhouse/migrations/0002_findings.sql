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
-- variant_id: exceptions that were sent alike, and are of one finding whatever decides on it: 8 bytes of a hash of what
--   they have in common before source maps and rules are known, then 8 of a hash of version and stack. It never changes.
-- finding_id, rank: the finding as it was known when the row was stored (`membership` in `finding_variants`).
-- by_trace_id, by_session_id: as for spans, few granules have the trace, or the session. A filter of eight granules costs a
--   lookup a quarter of eight filters.
-- index_granularity: a finding has few rows a day, of which all traces and sessions are counted.
-- parent_span_id: that of the span; zeros for a root, and for a log record, which does not name it.
-- browser, system, route, environment, host: where it occurred, by its span or record, else by its resource, at most 256 bytes each.
--   A route has no query and no ids (workers/exceptions/places.ts).
-- top_frame: function, file and line of the innermost frame of the application, as they were sent (shared/stacks/top-frame.ts).
-- debug_ids: script URL → debug id (a lower-case UUID), where the client has said which build of its scripts threw.
-- _block_number grows with every part in the moment in which the part is seen, and says exactly what a reader saw.
CREATE TABLE IF NOT EXISTS exceptions
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  variant_id FixedString(16),
  finding_id FixedString(30),
  rank UInt64,
  trace_id FixedString(16),
  span_id FixedString(8),
  parent_span_id FixedString(8),
  occurred_at_unix_nano UInt64,
  service_name LowCardinality(String),
  service_version LowCardinality(String),
  session_id String,
  source Enum8('span_event' = 1, 'log_record' = 2, 'span_status' = 3),
  fingerprint String,
  type String,
  message String CODEC(ZSTD(1)),
  stacktrace String CODEC(ZSTD(1)),
  span_name String,
  top_frame String,
  escaped Bool,
  browser LowCardinality(String),
  system LowCardinality(String),
  route LowCardinality(String),
  environment LowCardinality(String),
  host LowCardinality(String),
  debug_ids Map(String, String),
  stored_at DateTime64(3, 'UTC') DEFAULT now64(3, 'UTC') CODEC(Delta, LZ4),
  INDEX by_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 8,
  INDEX by_session_id session_id TYPE bloom_filter(0.01) GRANULARITY 8,
  INDEX by_stored_at stored_at TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, variant_id, received_at)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, enable_block_number_column = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- What findings are read from: a row per variant and day of arrival. All of it is of the occurrences that are retained, and
-- expires with them.
--
-- latest: the latest occurrence by stored_at, then received_at. Its texts are cut: a search reads that of every row, and messages
--   have up to 8 KiB.
-- first_received_at, last_received_at: whether anything of the day was received in a time that ends on another day.
-- by_stored_at: a list begins with what was stored last, and most days have nothing of that.
CREATE TABLE IF NOT EXISTS findings
(
  day Date,
  workspace_id LowCardinality(String),
  variant_id FixedString(16),
  surface_id SimpleAggregateFunction(anyLast, LowCardinality(String)),
  service_name SimpleAggregateFunction(anyLast, LowCardinality(String)),
  service_version SimpleAggregateFunction(anyLast, LowCardinality(String)),
  first_seen_unix_nano SimpleAggregateFunction(min, UInt64) DEFAULT 18446744073709551615,
  last_seen_unix_nano SimpleAggregateFunction(max, UInt64),
  occurrence_count SimpleAggregateFunction(sum, UInt64),
  latest SimpleAggregateFunction(max, Tuple(stored_at DateTime64(3, 'UTC'), received_at DateTime64(3, 'UTC'), type String, message String)),
  first_received_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) DEFAULT toDateTime64('2299-12-31 23:59:59', 3, 'UTC'),
  last_received_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  INDEX by_stored_at latest.stored_at TYPE minmax GRANULARITY 1
)
ENGINE = AggregatingMergeTree
PARTITION BY day
ORDER BY (workspace_id, variant_id)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS index_granularity = 512, ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS findings_from_exceptions TO findings AS
WITH least(occurred_at_unix_nano, toUInt64(toUnixTimestamp64Milli(received_at) + 300000) * 1000000) AS seen_unix_nano
SELECT
  toDate(received_at) AS day,
  workspace_id,
  variant_id,
  anyLast(exceptions.surface_id) AS surface_id,
  anyLast(exceptions.service_name) AS service_name,
  anyLast(exceptions.service_version) AS service_version,
  min(seen_unix_nano) AS first_seen_unix_nano,
  max(seen_unix_nano) AS last_seen_unix_nano,
  count() AS occurrence_count,
  max(tuple(stored_at, received_at, leftUTF8(type, 1000), leftUTF8(message, 1000))) AS latest,
  min(received_at) AS first_received_at,
  max(received_at) AS last_received_at
FROM exceptions
GROUP BY day, workspace_id, variant_id;

-- The finding that each variant belongs to: the only place where exceptions move from one finding to another.
--
-- membership: the higher rank holds: a finding that source maps have decided over one they have not, then that of the later
--   maps, then that of the later rules (clickhouse/tables/finding-moves-table.ts). A variant moves by a row of a higher rank.
-- finding_ids: each finding that the variant was ever in, so that the id of an emptied finding leads to its successor.
-- top_frame: the frame that lists show. That of a later move holds: source maps have resolved it.
-- last_stored_at: that of its last occurrence. changed_at: when its last row was stored.
-- TTL: a week after the last occurrence has expired. Rows of a variant are merged with each other after an hour, so that a row
--   which expires has no later one beside it, and a look-up opens few parts, whatever the retention.
CREATE TABLE IF NOT EXISTS finding_variants
(
  workspace_id LowCardinality(String),
  variant_id FixedString(16),
  membership SimpleAggregateFunction(max, Tuple(rank UInt64, finding_id FixedString(30))),
  finding_ids SimpleAggregateFunction(groupUniqArrayArray, Array(FixedString(30))),
  top_frame SimpleAggregateFunction(max, Tuple(rank UInt64, text String)),
  last_stored_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')),
  changed_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) DEFAULT now64(3, 'UTC'),
  INDEX by_finding_id finding_ids TYPE bloom_filter(0.001) GRANULARITY 1
)
ENGINE = AggregatingMergeTree
ORDER BY (workspace_id, variant_id)
TTL toDate(changed_at) + INTERVAL ${retention_days} DAY + INTERVAL 7 DAY
SETTINGS index_granularity = 1024, min_age_to_force_merge_seconds = 3600;

CREATE MATERIALIZED VIEW IF NOT EXISTS finding_variants_from_exceptions TO finding_variants AS
SELECT
  workspace_id,
  variant_id,
  max(tuple(rank, finding_id)) AS membership,
  groupUniqArray(finding_id) AS finding_ids,
  max(tuple(toUInt64(0), exceptions.top_frame)) AS top_frame,
  max(stored_at) AS last_stored_at
FROM exceptions
GROUP BY workspace_id, variant_id;

-- Occurrences by five minutes of arrival: whatever their rate, a variant has 288 rows a day, and a few more where
-- stored_at lags behind. ORDER BY: graphs ask for the variants of a few findings of all hours. Lists that ask for all variants of
-- some hours read one day. With hours before variants the graph of a finding of 1,000 variants took 55 ms instead of 20, and such
-- a list 9 instead of 18.
CREATE TABLE IF NOT EXISTS finding_buckets
(
  day Date,
  workspace_id LowCardinality(String),
  variant_id FixedString(16),
  received_bucket DateTime('UTC') CODEC(Delta, LZ4),
  stored_bucket DateTime('UTC') CODEC(Delta, LZ4),
  first_received_at SimpleAggregateFunction(min, DateTime64(3, 'UTC')) CODEC(Delta, LZ4),
  last_received_at SimpleAggregateFunction(max, DateTime64(3, 'UTC')) CODEC(Delta, LZ4),
  occurrence_count SimpleAggregateFunction(sum, UInt64),
  latest SimpleAggregateFunction(max, Tuple(stored_at DateTime64(3, 'UTC'), received_at DateTime64(3, 'UTC'))) CODEC(ZSTD(1)),
  INDEX by_stored_at latest.stored_at TYPE minmax GRANULARITY 4
)
ENGINE = AggregatingMergeTree
PARTITION BY day
PRIMARY KEY (workspace_id, variant_id)
ORDER BY (workspace_id, variant_id, received_bucket, stored_bucket)
TTL day + INTERVAL ${retention_days} DAY
SETTINGS index_granularity = 256, ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS finding_buckets_from_exceptions TO finding_buckets AS
SELECT
  toDate(received_at) AS day,
  workspace_id,
  variant_id,
  toStartOfFiveMinutes(received_at) AS received_bucket,
  toStartOfFiveMinutes(stored_at) AS stored_bucket,
  min(received_at) AS first_received_at,
  max(received_at) AS last_received_at,
  count() AS occurrence_count,
  max(tuple(stored_at, received_at)) AS latest
FROM exceptions
GROUP BY day, workspace_id, variant_id, received_bucket, stored_bucket;

-- Which variants arrived in each two seconds, a row per insert: what alerts look for when everything of these seconds is stored.
-- Failures arrive here when they are judged, with the time at which their spans were received.
CREATE TABLE IF NOT EXISTS finding_arrivals
(
  arrived DateTime('UTC'),
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  variant_id FixedString(16),
  is_failure Bool
)
ENGINE = MergeTree
PARTITION BY toDate(arrived)
ORDER BY (arrived, workspace_id, surface_id, variant_id)
TTL toDate(arrived) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS finding_arrivals_from_exceptions TO finding_arrivals AS
SELECT DISTINCT
  toStartOfInterval(received_at, INTERVAL 2 SECOND) AS arrived,
  workspace_id,
  surface_id,
  variant_id,
  source = 'span_status' AS is_failure
FROM exceptions;

-- Spans that failed without an exception of their own, with the columns of `exceptions`. About half a minute later they are copied
-- to `exceptions`, unless something else in their trace explains them (workers/upkeep/failures/). Until then they count nowhere.
CREATE TABLE IF NOT EXISTS failures AS exceptions
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, trace_id, span_id)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- Rows of `exceptions` that do not count, because another row of their trace is the same occurrence. Rows are identified by variant,
-- trace, span, source and both times.
--
-- change: how many more of the rows do not count; negative if some count again. stored: how many rows there were.
CREATE TABLE IF NOT EXISTS exception_twins
(
  workspace_id LowCardinality(String),
  surface_id LowCardinality(String),
  received_at DateTime64(3, 'UTC') CODEC(Delta, LZ4),
  variant_id FixedString(16),
  trace_id FixedString(16),
  span_id FixedString(8),
  source Enum8('span_event' = 1, 'log_record' = 2, 'span_status' = 3),
  occurred_at_unix_nano UInt64,
  service_name LowCardinality(String),
  service_version LowCardinality(String),
  session_id String,
  change Int32,
  stored UInt32,
  INDEX by_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX by_session_id session_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (workspace_id, variant_id, received_at)
TTL toDate(received_at) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- The rows count in the day and in the five minutes in which they were counted. A UInt64 has no negative numbers: a sum with
-- 2^64 − 1 is one less.
CREATE MATERIALIZED VIEW IF NOT EXISTS findings_from_exception_twins TO findings AS
SELECT
  toDate(received_at) AS day,
  workspace_id,
  variant_id,
  anyLast(exception_twins.surface_id) AS surface_id,
  anyLast(exception_twins.service_name) AS service_name,
  anyLast(exception_twins.service_version) AS service_version,
  toUInt64(-sum(change)) AS occurrence_count
FROM exception_twins
GROUP BY day, workspace_id, variant_id;

CREATE MATERIALIZED VIEW IF NOT EXISTS finding_buckets_from_exception_twins TO finding_buckets AS
SELECT
  toDate(received_at) AS day,
  workspace_id,
  variant_id,
  toStartOfFiveMinutes(received_at) AS received_bucket,
  received_bucket AS stored_bucket,
  min(received_at) AS first_received_at,
  max(received_at) AS last_received_at,
  toUInt64(-sum(change)) AS occurrence_count
FROM exception_twins
GROUP BY day, workspace_id, variant_id, received_bucket;
