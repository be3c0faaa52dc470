import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../deploy/local/ports.ts'
import { answers, startChild, untilReady } from '../../deploy/local/processes/child-process.ts'
import { sendRequests } from '../load/send-requests.ts'
import { writtenBlocks } from '../measure/clickhouse-work.ts'
import type { PipelineContender } from '../measure/measure-pipeline.ts'
import { createPeerDatabase, type PipelineStage } from './pipeline-contenders.ts'

/** Name of the Collector in reports. */
export const COLLECTOR = 'OpenTelemetry Collector, ClickHouse exporter'

const CONFIG = fileURLToPath(new URL('./otelcol.yaml', import.meta.url))
const CONNECTIONS = 64
const LAST_LINES = 20

/** Starts the Collector at path `binary`. Throws if it does not become ready, and shows its last output. */
export async function startCollector(stage: PipelineStage, binary: string): Promise<PipelineContender> {
  const { context, generator, clickhouse } = stage
  const database = await createPeerDatabase(clickhouse, 'peer_collector', OTELCOL_TRACES_TABLE)
  const port = await freePort()
  const lines: string[] = []
  const child = await startChild({
    command: binary,
    args: ['--config', CONFIG],
    env: {
      ...process.env,
      OTELCOL_PORT: String(port),
      OTELCOL_STORAGE_DIR: join(context.dir, 'otelcol'),
      OTELCOL_CLICKHOUSE_URL: clickhouse.url,
      OTELCOL_CLICKHOUSE_DATABASE: database,
    },
    log(line) {
      lines.push(line)
      if (lines.length > LAST_LINES) lines.shift()
    },
  })
  context.onEnd(async () => {
    if (lines.length > 0) context.progress(`last output of ${binary}:\n${lines.join('\n')}`)
    await child.stop(5_000)
  })
  // The Collector has no health check without another extension. Any response of its receiver shows that it is ready.
  await untilReady(COLLECTOR, child, () => answers(`http://127.0.0.1:${port}/v1/traces`), {})
  return {
    name: COLLECTOR,
    pids: { collector: child.pid, ClickHouse: clickhouse.pid },
    database,
    table: 'otel_traces',
    send: sendRequests(generator, { name: COLLECTOR, port, path: '/v1/traces', headers: {}, connections: CONNECTIONS }),
    inserts: () => writtenBlocks(clickhouse.client),
  }
}

/**
 * Table for the Collector's ClickHouse exporter. It has the order and partitions of the product's table and lacks the six
 * skip indexes of the exporter's schema, so that contenders differ only in how rows arrive.
 */
const OTELCOL_TRACES_TABLE = `
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
