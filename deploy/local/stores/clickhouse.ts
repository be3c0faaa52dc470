import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { closeSync, openSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { GIB, MIB } from '../../../schemas/units.ts'
import { answers, startChild, untilReady } from '../processes/child-process.ts'
import { writePrivateFile } from '../workspace/private-file.ts'
import type { LocalService, LocalServiceOptions } from './service.ts'

/** Options of a local ClickHouse. */
interface ClickHouseOptions extends LocalServiceOptions {
  /** Memory limit of the whole server. Default: 4 GiB. */
  memoryBytes?: number
  /** Password of the user {@link CLICKHOUSE_USER}, without characters that a URL escapes. */
  password: string
  /** Makes the server a node of a cluster. */
  node?: ClusterNode
}

/** What a node of a cluster has besides a single server. */
interface ClusterNode {
  /** Port of the native protocol, which the other nodes use. */
  readonly tcpPort: number
  /** Elements of the configuration file: the cluster, the macros of this node and the Keeper. */
  readonly config: string
}

/** The only user of a local ClickHouse that can connect. */
export const CLICKHOUSE_USER = 'penstock'

/**
 * Space of its disk that the server leaves free: it refuses inserts, which wait, and merges before there is none. It may ignore
 * that a file could not be written for lack of space, and then publishes a part of empty files (deploy/clickhouse/README.md).
 */
export const KEEP_FREE_BYTES = 256 * MIB

const SERVER = fileURLToPath(new URL('clickhouse-server.mjs', import.meta.url))
const FORGET_LOST_PARTS = fileURLToPath(new URL('../../clickhouse/forget-lost-parts.sh', import.meta.url))
const FORGET_DEADLINE_MS = 60_000

/**
 * Starts ClickHouse from the chdb package. It has the real engine, MergeTree on disk and the HTTP interface, and needs no
 * installation. Only this machine can connect, with the password: the server runs as this user, so a query can read and
 * write this user's files. The server ends with this process.
 */
export async function startClickHouse(options: ClickHouseOptions): Promise<LocalService> {
  await mkdir(options.dir, { recursive: true })
  const configFile = join(options.dir, 'config.xml')
  const usersFile = join(options.dir, 'users.xml')
  await writePrivateFile(configFile, serverConfig(options, usersFile))
  await writePrivateFile(usersFile, usersConfig(options.password))
  await forgetLostParts(options)
  const lifeline = await openLifeline()
  const child = await startChild({
    command: process.execPath,
    args: [
      SERVER,
      `--path=${options.dir}`,
      `--config-file=${configFile}`,
      '--listen_host=127.0.0.1',
      `--http_port=${options.port}`,
      ...(options.node ? [`--tcp_port=${options.node.tcpPort}`] : []),
    ],
    stdinFd: lifeline.readFd,
    askToEnd: lifeline.cut,
    // An open keep-alive connection delays a clean end. Killing the server is safe at any moment.
    stopDeadlineMs: 1_000,
    log: options.log,
  })
  closeSync(lifeline.readFd)
  void child.exited.then(lifeline.cut)
  await untilReady('ClickHouse', child, () => answers(`http://127.0.0.1:${options.port}/ping`, [200]), options)
  return Object.assign(child, { url: clickhouseUrl(options) })
}

/** Makes the server accept the insert whose part it has lost, if it was killed (deploy/clickhouse). */
async function forgetLostParts({ dir, log }: ClickHouseOptions): Promise<void> {
  const { stdout } = await promisify(execFile)(FORGET_LOST_PARTS, [dir], { timeout: FORGET_DEADLINE_MS })
  for (const line of stdout.split('\n')) if (line) log(line)
}

/** Returns the URL of a local ClickHouse, with user and password. */
export function clickhouseUrl({ port, password }: Pick<ClickHouseOptions, 'port' | 'password'>): string {
  return `http://${CLICKHOUSE_USER}:${password}@127.0.0.1:${port}`
}

/**
 * Opens a FIFO as the stdin of the server, which ends when its stdin does. ClickHouse opens `/dev/stdin` by name, and that
 * fails for the socket that Node creates as stdin of a child. This process has the only writing end of the FIFO.
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

/**
 * Returns the server's configuration. The default caches are too large for this memory limit, so they are set here. By default
 * the server has none for the contents of indexes, and reads the filters of trace ids of all parts for each trace (6 MB for
 * 100 million spans in 56 parts).
 */
function serverConfig({ dir, memoryBytes = 4 * GIB, node }: ClickHouseOptions, usersFile: string): string {
  return `<clickhouse>
  <users_config>${usersFile}</users_config>
  <max_server_memory_usage>${memoryBytes}</max_server_memory_usage>
  <mark_cache_size>134217728</mark_cache_size>
  <primary_index_cache_size>134217728</primary_index_cache_size>
  <index_mark_cache_size>67108864</index_mark_cache_size>
  <index_uncompressed_cache_size>268435456</index_uncompressed_cache_size>
  <max_concurrent_queries>200</max_concurrent_queries>
  <keep_alive_timeout>10</keep_alive_timeout>
  <send_crash_reports><enabled>false</enabled></send_crash_reports>
  <storage_configuration>
    <disks>
      <default><keep_free_space_bytes>${KEEP_FREE_BYTES}</keep_free_space_bytes></default>
      <backups><type>local</type><path>${dir}/backups/</path></backups>
    </disks>
  </storage_configuration>
  <backups><allowed_disk>backups</allowed_disk></backups>
  ${node ? `<tcp_port>${node.tcpPort}</tcp_port>${node.config}` : ''}
</clickhouse>
`
}

/**
 * Returns the users. clickhouse-local runs the query that starts the server as `default` without a password, as from
 * 127.0.0.1. That query lasts as long as the server, and its session is the only one that `default` may have, so that no
 * connection can be `default`. Its grants are those of the query. The other user may connect from `networks`.
 */
export function usersConfig(password: string, networks = '127.0.0.1'): string {
  const digest = createHash('sha256').update(password).digest('hex')
  return `<clickhouse>
  <profiles>
    <default/>
    <one_session><max_sessions_for_user>1</max_sessions_for_user></one_session>
  </profiles>
  <quotas><default/></quotas>
  <users>
    <default>
      <no_password/>
      <networks><ip>127.0.0.1</ip></networks>
      <profile>one_session</profile>
      <grants>
        <query>GRANT SYSTEM LISTEN ON *.*</query>
        <query>GRANT CREATE TEMPORARY TABLE ON *.*</query>
        <query>GRANT READ ON FILE</query>
      </grants>
    </default>
    <${CLICKHOUSE_USER}>
      <password_sha256_hex>${digest}</password_sha256_hex>
      <networks><ip>${networks}</ip></networks>
    </${CLICKHOUSE_USER}>
  </users>
</clickhouse>
`
}
