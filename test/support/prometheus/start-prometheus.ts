import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '../../../deploy/local/ports.ts'
import { answers, startChild, untilReady } from '../../../deploy/local/processes/child-process.ts'

/** A running Prometheus. */
export interface RunningPrometheus {
  readonly url: string
  /** Returns the values of an instant query. */
  query(expr: string): Promise<readonly Sample[]>
  /** Returns the rules with their state. */
  alerts(): Promise<readonly AlertRule[]>
  stop(): Promise<void>
}

/** One value of a query. */
interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: number
}

/** An alert rule as Prometheus has read it. */
interface AlertRule {
  readonly name: string
  readonly query: string
  readonly state: 'inactive' | 'pending' | 'firing'
  readonly annotations: Readonly<Record<string, string>>
  readonly labels: Readonly<Record<string, string>>
  readonly alerts: readonly { readonly state: string; readonly labels: Readonly<Record<string, string>> }[]
}

/** What a Prometheus scrapes, and by which rules it judges. */
interface PrometheusOptions {
  readonly command: string
  readonly dir: string
  /** Address of the admin port of each job. */
  readonly targets: Readonly<Record<string, string>>
  /** Text of the rules. */
  readonly rules: string
  /** Seconds between two scrapes, and between two evaluations. */
  readonly everySeconds?: number
}

/** Starts Prometheus, by default with a scrape and an evaluation each second. */
export async function startPrometheus(options: PrometheusOptions): Promise<RunningPrometheus> {
  const { command, dir, targets, rules, everySeconds = 1 } = options
  await mkdir(dir, { recursive: true })
  const jobs = Object.entries(targets).map(
    ([job, url]) => `  - { job_name: ${job}, static_configs: [{ targets: ['${new URL(url).host}'] }] }\n`,
  )
  const [every, timeout] = [`${everySeconds}s`, `${Math.min(everySeconds, 5)}s`]
  const global = `global: { scrape_interval: ${every}, scrape_timeout: ${timeout}, evaluation_interval: ${every} }\n`
  await writeFile(join(dir, 'rules.yml'), rules)
  await writeFile(join(dir, 'prometheus.yml'), `${global}rule_files: [rules.yml]\nscrape_configs:\n${jobs.join('')}`)
  const address = `127.0.0.1:${await freePort()}`
  const lines: string[] = []
  const child = await startChild({
    command,
    args: [
      `--config.file=${join(dir, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(dir, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ],
    log: line => void lines.push(line),
  })
  const within = { readyDeadlineMs: 30_000 }
  await untilReady('Prometheus', child, () => answers(`http://${address}/-/ready`, [200]), within).catch(error => {
    throw new Error(`Prometheus did not start:\n${lines.slice(-20).join('\n')}`, { cause: error })
  })
  const get = async <T>(path: string): Promise<T> => {
    const response = await fetch(`http://${address}/api/v1/${path}`)
    const body = (await response.json()) as { status: string; data: T; error?: string }
    if (body.status !== 'success') throw new Error(`${path}: ${body.error}`)
    return body.data
  }
  return {
    url: `http://${address}`,
    async query(expr) {
      type Found = { metric: Record<string, string>; value: [number, string] }
      const { result } = await get<{ result: Found[] }>(`query?query=${encodeURIComponent(expr)}`)
      return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
    },
    async alerts() {
      const { groups } = await get<{ groups: { rules: AlertRule[] }[] }>('rules?type=alert')
      return groups.flatMap(({ rules: found }) => found)
    },
    stop: () => child.stop(2_000),
  }
}

/** Returns the text of a file of `deploy/`. */
export function readDeployFile(path: string): Promise<string> {
  return readFile(new URL(`../../../deploy/${path}`, import.meta.url), 'utf8')
}
