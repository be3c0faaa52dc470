import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../deploy/local/ports.ts'
import { answers, startChild, untilReady } from '../../../deploy/local/processes/child-process.ts'
import { errorMessage } from '../../../shared/runtime/errors.ts'
import { sendRequests } from '../../load/send-requests.ts'
import type { PipelineContender } from '../../measure/measure-pipeline.ts'
import type { Stage } from '../../services/start-stage.ts'

/** Name of the Collector with a queue in memory in reports. */
export const COLLECTOR_IN_MEMORY = 'OpenTelemetry Collector, ClickHouse exporter, queue in memory'
/** Name of the Collector with a persistent queue in reports. */
export const COLLECTOR_PERSISTENT = 'OpenTelemetry Collector, ClickHouse exporter, persistent queue with fsync'

/** Configurations of the Collector, by its name in reports. */
const CONFIGS = { [COLLECTOR_IN_MEMORY]: 'in-memory.yaml', [COLLECTOR_PERSISTENT]: 'persistent.yaml' } as const

const LAST_LINES = 20

/** Running Collectors, and the reason for each that is missing. */
interface StartedCollectors {
  readonly rivals: readonly PipelineContender[]
  readonly skipped: readonly string[]
}

/** Starts the Collector of `OTELCOL_BIN` with each configuration. */
export async function startCollectors(stage: Stage): Promise<StartedCollectors> {
  const binary = process.env.OTELCOL_BIN
  if (!binary) return { rivals: [], skipped: ['OpenTelemetry Collector: OTELCOL_BIN does not name one'] }
  const rivals: PipelineContender[] = []
  const skipped: string[] = []
  for (const [name, config] of Object.entries(CONFIGS)) {
    try {
      rivals.push(await startCollector(stage, binary, name, config))
    } catch (error) {
      skipped.push(`${name}: ${errorMessage(error).split('\n', 1)[0]}`)
    }
  }
  return { rivals, skipped }
}

/** Starts the Collector at path `binary`. Throws if it does not become ready, and shows its last output. */
async function startCollector(
  { context, generator, clickhouse }: Stage,
  binary: string,
  name: string,
  config: string,
): Promise<PipelineContender> {
  const database = `peer_collector_${config.replace('.yaml', '').replace('-', '_')}`
  const port = await freePort()
  const lines: string[] = []
  const { username, password, origin } = new URL(clickhouse.url)
  const child = await startChild({
    command: binary,
    args: ['--config', fileURLToPath(new URL(config, import.meta.url))],
    env: {
      ...process.env,
      OTELCOL_PORT: String(port),
      OTELCOL_STORAGE_DIR: join(context.dir, database),
      OTELCOL_CLICKHOUSE_URL: origin,
      OTELCOL_CLICKHOUSE_USER: username,
      OTELCOL_CLICKHOUSE_PASSWORD: password,
      OTELCOL_CLICKHOUSE_DATABASE: database,
    },
    log(line) {
      lines.push(line)
      if (lines.length > LAST_LINES) lines.shift()
    },
  })
  context.onEnd(async () => {
    if (lines.length > 0) context.progress(`last output of ${name}:\n${lines.join('\n')}`)
    await child.stop(5_000)
  })
  // The Collector has no health check without another extension. Any response of its receiver shows that it is ready.
  await untilReady(name, child, () => answers(`http://127.0.0.1:${port}/v1/traces`), {})
  return {
    name,
    pids: { collector: child.pid, ClickHouse: clickhouse.pid },
    database,
    table: 'otel_traces',
    send: sendRequests(generator, { name, port, path: '/v1/traces', headers: {} }),
  }
}
