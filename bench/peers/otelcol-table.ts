/**
 * Names and types that the Collector's ClickHouse exporter inserts into. Ordered and partitioned as the product's table,
 * and without the six skip indexes of the exporter's own schema: the rivals differ in how rows get there.
 */
export const OTELCOL_TRACES_TABLE = `
CREATE TABLE otel_traces
(
  Timestamp DateTime64(9),
  TraceId String,
  SpanId String,
  ParentSpanId String,
  TraceState String,
  SpanName LowCardinality(String),
  SpanKind LowCardinality(String),
  ServiceName LowCardinality(String),
  ResourceAttributes Map(LowCardinality(String), String),
  ScopeName String,
  ScopeVersion String,
  SpanAttributes Map(LowCardinality(String), String),
  Duration UInt64,
  StatusCode LowCardinality(String),
  StatusMessage String,
  Events Nested (Timestamp DateTime64(9), Name LowCardinality(String), Attributes Map(LowCardinality(String), String)),
  Links Nested (TraceId String, SpanId String, TraceState String, Attributes Map(LowCardinality(String), String))
)
ENGINE = MergeTree PARTITION BY toDate(Timestamp) ORDER BY (TraceId, Timestamp)`
