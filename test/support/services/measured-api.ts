import { readFileSync, writeFileSync } from 'node:fs'
import { freePort } from '../../../deploy/local/ports.ts'
import { startNodeProcess } from '../../../deploy/local/processes/processes.ts'
import { KIB } from '../../../schemas/units.ts'
import { IMAGE_MALLOC } from '../containers/image-malloc.ts'
import { AUDIENCE, ISSUER, sessionPublicKeyPem } from './api.ts'

/** An API in a process of its own, with the memory that docs/operate/processes.md advises, so that its memory can be measured. */
export interface MeasuredApi {
  readonly port: number
  readonly baseUrl: string
  stop(deadlineMs: number): Promise<unknown>
  /** Returns its largest resident set so far, as counted by the kernel, in bytes. */
  highWater(): number
  /**
   * Measures its largest memory during the work, as counted by the kernel, in bytes. Pages of files are left out: 60 MB of the
   * program, which the kernel drops and reads again when a container is full.
   */
  peakDuring(work: () => Promise<unknown>): Promise<number>
}

/** Starts an API on the stores of a test. `settings` are added to its environment. */
export async function startMeasuredApi(
  stores: { readonly redisUrl: string; readonly clickhouseUrl: string; readonly database: string },
  settings: Readonly<Record<string, string>>,
): Promise<MeasuredApi> {
  const [port, adminPort] = [await freePort(), await freePort()]
  const api = await startNodeProcess({
    script: 'api/main.ts',
    env: {
      PATH: process.env.PATH,
      NODE_OPTIONS: '--max-old-space-size=128 --max-semi-space-size=4',
      ...IMAGE_MALLOC,
      REDIS_URL: stores.redisUrl,
      DIRECTORY_REDIS_URL: stores.redisUrl,
      CLICKHOUSE_URL: stores.clickhouseUrl,
      CLICKHOUSE_DATABASE: stores.database,
      AUTH_PUBLIC_KEY: sessionPublicKeyPem,
      AUTH_ISSUER: ISSUER,
      AUTH_AUDIENCE: AUDIENCE,
      KEY_PEPPER: 'the pepper of the tests, 32 bytes and more',
      API_PORT: String(port),
      API_ADMIN_PORT: String(adminPort),
      LOG_LEVEL: 'warn',
      ...settings,
    },
    adminUrl: `http://127.0.0.1:${adminPort}`,
    log: line => process.env.STACK_LOG && console.log(line),
    signal: new AbortController().signal,
  })
  const bytesOf = (name: string) => {
    const status = readFileSync(`/proc/${api.pid}/status`, 'latin1')
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) * KIB
  }
  return {
    port,
    baseUrl: `http://127.0.0.1:${port}`,
    stop: deadlineMs => api.stop(deadlineMs),
    highWater: () => bytesOf('VmHWM'),
    async peakDuring(work) {
      writeFileSync(`/proc/${api.pid}/clear_refs`, '5')
      await work()
      return bytesOf('VmHWM') - bytesOf('RssFile')
    },
  }
}
