import { execFile } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { answers, startChild, untilReady } from '../processes/child-process.ts'
import type { LocalService, LocalServiceOptions } from './service.ts'

export interface ClickHouseOptions extends LocalServiceOptions {
  /** What the whole server may allocate. Default 4 GiB. */
  memoryBytes?: number
}

const SERVER = fileURLToPath(new URL('clickhouse-server.mjs', import.meta.url))

/**
 * ClickHouse from the chdb package: the real engine, MergeTree on disk and the HTTP interface, without an installation.
 * User `default`, no password, reachable from this machine only. It ends when this process does.
 */
export async function startClickHouse(options: ClickHouseOptions): Promise<LocalService> {
  await mkdir(options.dir, { recursive: true })
  const configFile = join(options.dir, 'config.xml')
  await writeFile(configFile, serverConfig(options.memoryBytes ?? 4 * 1024 ** 3))
  const lifeline = await openLifeline()
  const child = await startChild({
    command: process.execPath,
    args: [
      SERVER,
      `--path=${options.dir}`,
      `--config-file=${configFile}`,
      '--listen_host=127.0.0.1',
      `--http_port=${options.port}`,
    ],
    stdinFd: lifeline.readFd,
    askToEnd: lifeline.cut,
    // An open keep-alive connection holds it up for as long as that may live; its data is safe at any moment.
    stopDeadlineMs: 1_000,
    log: options.log,
  })
  closeSync(lifeline.readFd)
  void child.exited.then(lifeline.cut)
  const url = `http://127.0.0.1:${options.port}`
  await untilReady('ClickHouse', child, () => answers(`${url}/ping`, [200]), options)
  return Object.assign(child, { url })
}

/**
 * The server ends when its stdin does. ClickHouse opens `/dev/stdin` by name, which a socket (what Node makes for a
 * child's stdin) does not allow: so it is a FIFO, whose only writing end is here and closes with this process.
 */
async function openLifeline(): Promise<{ readFd: number; cut: () => void }> {
  const directory = await mkdtemp(join(tmpdir(), 'penstock-'))
  const path = join(directory, 'lifeline')
  await promisify(execFile)('mkfifo', [path])
  let writeFd: number | undefined = openSync(path, 'r+')
  const readFd = openSync(path, 'r')
  await rm(directory, { recursive: true })
  return {
    readFd,
    cut() {
      if (writeFd !== undefined) closeSync(writeFd)
      writeFd = undefined
    },
  }
}

/** The caches' defaults are made for servers with much memory: all of them together stay below the limit here. */
function serverConfig(memoryBytes: number): string {
  return `<clickhouse>
  <max_server_memory_usage>${memoryBytes}</max_server_memory_usage>
  <mark_cache_size>134217728</mark_cache_size>
  <primary_index_cache_size>134217728</primary_index_cache_size>
  <index_mark_cache_size>67108864</index_mark_cache_size>
  <max_concurrent_queries>200</max_concurrent_queries>
  <keep_alive_timeout>10</keep_alive_timeout>
  <send_crash_reports><enabled>false</enabled></send_crash_reports>
</clickhouse>
`
}
