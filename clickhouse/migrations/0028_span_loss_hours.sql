-- The hours of arrival in which spans of a workspace were lost, so that the verdict on a trace looks for losses only where there
-- are any (docs/decisions/036). Three queries of the losses of a time take ClickHouse 5 ms. These hours are a few rows, which can be
-- read before it is known when the trace arrived. Views write each row before the insert that it comes from is confirmed, and every
-- `npm run migrate` adds those of losses that no view has seen (migrate/fill-loss-hours.ts).
--
-- A row only says that the losses of the hour are to be read, so one that is stored twice, or whose loss a replay has made up for,
-- changes nothing.
CREATE TABLE IF NOT EXISTS span_loss_hours
(
  workspace_id LowCardinality(String),
  received_hour DateTime('UTC')
)
ENGINE = ReplacingMergeTree
PARTITION BY toYYYYMM(received_hour)
ORDER BY (workspace_id, received_hour)
TTL toDate(received_hour) + INTERVAL ${retention_days} DAY
SETTINGS ttl_only_drop_parts = 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS span_loss_hours_from_log TO span_loss_hours AS
SELECT DISTINCT workspace_id, toStartOfHour(received_at) AS received_hour FROM ingest_log
WHERE signal = 'traces' AND (notEmpty(dead_lettered) OR notEmpty(discarded));

CREATE MATERIALIZED VIEW IF NOT EXISTS span_loss_hours_from_refusals TO span_loss_hours AS
SELECT DISTINCT workspace_id, received_hour FROM request_counts
WHERE signal = 'traces' AND startsWith(outcome, 'refused-') AND requests > 0;

CREATE MATERIALIZED VIEW IF NOT EXISTS span_loss_hours_from_deletions TO span_loss_hours AS
SELECT DISTINCT workspace_id, received_hour FROM deleted_rows
WHERE table_name = 'spans' AND rows > 0;
