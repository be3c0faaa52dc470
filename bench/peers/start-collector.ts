import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../deploy/local/ports.ts'
import { answers, startChild, untilReady } from '../../deploy/local/processes/child-process.ts'
import { sendRequests } from '../load/send-requests.ts'
import { writtenBlocks } from '../measure/clickhouse-work.ts'
import type { PipelineContender } from '../measure/measure-pipeline.ts'
import { OTELCOL_TRACES_TABLE } from './otelcol-table.ts'
import { createPeerDatabase, type PipelineStage } from './pipeline-contenders.ts'

export const COLLECTOR = 'OpenTelemetry Collector, ClickHouse exporter'

const CONFIG = fileURLToPath(new URL('./otelcol.yaml', import.meta.url))
const CONNECTIONS = 64
const LAST_LINES = 20

/** Starts the Collector that `binary` names. Throws with what it wrote last when it does not come up. */
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
    if (lines.length > 0) context.progress(`${binary} wrote last:\n${lines.join('\n')}`)
    await child.stop(5_000)
  })
  // It has no health check without one more extension; any answer of its receiver says that the pipeline is up.
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
