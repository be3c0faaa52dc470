-- What is shown of few findings at a time: type and message, the versions that threw it, and in how many traces and sessions
-- it was seen. A row per finding and day, as in `findings`, which has had these columns so far. Reading a column reads a
-- granule: of `findings` 8,192 rows of a day, whose states must all be built to read those of one finding. Here they are 32. The
-- granularity of a table cannot be changed.
--
-- A row that is stored twice changes nothing, because sets, sketches and maxima have no duplicates. So the table needs no
-- deduplication window, and the rows of before are copied while workers run: after the inserts that began before the view
-- (inserts-in-progress.ts). fsync: workers fill the table before the migration sets what the operator has chosen.
--
-- The earlier version still reads the columns of `findings`. They go one release later.
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
SETTINGS index_granularity = 32, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1,
  min_age_to_force_merge_seconds = 86400, min_age_to_force_merge_on_partition_only = 1,
  enable_max_bytes_limit_for_min_age_to_force_merge = 1;

-- As in `findings` (0014), a time in the future counts as five minutes after the arrival at most.
CREATE MATERIALIZED VIEW IF NOT EXISTS finding_details_from_exceptions TO finding_details AS
WITH least(occurred_at_unix_nano, toUInt64(toUnixTimestamp64Milli(received_at) + 300000) * 1000000) AS seen_unix_nano
SELECT
  toDate(received_at) AS day,
  workspace_id,
  finding_id,
  argMaxState(exceptions.type, seen_unix_nano) AS type,
  argMaxState(exceptions.message, seen_unix_nano) AS message,
  groupUniqArrayState(20)(leftUTF8(toString(service_version), 256)) AS service_versions,
  uniqCombinedState(14)(nullIf(trace_id, toFixedString('', 16))) AS traces,
  uniqCombinedState(14)(nullIf(session_id, '')) AS sessions
FROM exceptions
GROUP BY day, workspace_id, finding_id;

-- In blocks of 64 MiB: a sketch has up to 12 KB, and by default a block has a million rows.
INSERT INTO finding_details (day, workspace_id, finding_id, type, message, service_versions, traces, sessions)
SELECT day, workspace_id, finding_id, type, message, service_versions, traces, sessions FROM findings
SETTINGS insert_deduplicate = 0, max_partitions_per_insert_block = 0, max_block_size = 8192, min_insert_block_size_bytes = 67108864;
