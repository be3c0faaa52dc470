import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../deploy/local/ports.ts'
import type { LocalCredentials } from '../../../deploy/local/start.ts'

const BOOTSTRAP = fileURLToPath(new URL('../../../deploy/local/bootstrap.mjs', import.meta.url))
const PORT_NAMES = [
  'INGEST_PORT',
  'INGEST_ADMIN_PORT',
  'INGEST_GRPC_PORT',
  'API_PORT',
  'API_ADMIN_PORT',
  'WORKERS_ADMIN_PORT',
  'REDIS_PORT',
  'DIRECTORY_REDIS_PORT',
  'CLICKHOUSE_PORT',
  'S3_PORT',
]

/** A running `npm start` with its output. */
export interface LocalStart {
  readonly lines: readonly string[]
  /** Resolves when it has printed that it is ready; rejects if it ends before. */
  untilReady(deadlineMs: number): Promise<LocalCredentials>
  /** Returns the pids of a process so far, first to last. */
  pidsOf(name: string): number[]
  signal(signal: NodeJS.Signals): void
  readonly exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

/** Returns free ports for each setting, so that other installations of this machine do not interfere. */
export async function freePorts(): Promise<Record<string, string>> {
  const taken = new Set<number>()
  while (taken.size < PORT_NAMES.length) taken.add(await freePort())
  return Object.fromEntries([...taken].map((port, i) => [PORT_NAMES[i], String(port)]))
}

/** Runs `npm start` with these settings; settings of the shell that point to other servers are left out. */
export function runLocalStart(localDir: string, env: Record<string, string>): LocalStart {
  const { REDIS_URL: _, DIRECTORY_REDIS_URL: __, CLICKHOUSE_URL: ___, S3_ENDPOINT: ____, ...inherited } = process.env
  const child = spawn(process.execPath, [BOOTSTRAP, 'start'], {
    env: { ...inherited, ...env, LOCAL_DIR: localDir },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const lines: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', line => lines.push(line))
  }
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>(resolve => {
    child.once('close', (code, signal) => resolve({ code, signal }))
  })
  let hasExited = false
  void exited.then(() => {
    hasExited = true
  })

  return {
    lines,
    exited,
    signal: signal => void child.kill(signal),
    pidsOf: name =>
      lines.flatMap(line => {
        const match = line.match(/^\S+ (\S+) +ready in .*\(pid (\d+)\)$/)
        return match?.[1] === name ? [Number(match[2])] : []
      }),
    async untilReady(deadlineMs) {
      const until = Date.now() + deadlineMs
      while (!lines.some(line => line.startsWith('Penstock is ready'))) {
        if (hasExited || Date.now() > until) {
          throw new Error(`${hasExited ? 'npm start ended' : 'npm start was not ready in time'}:\n${lines.join('\n')}`)
        }
        await delay(20)
      }
      return JSON.parse(await readFile(join(localDir, 'credentials.json'), 'utf8')) as LocalCredentials
    },
  }
}
