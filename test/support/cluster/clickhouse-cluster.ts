import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../deploy/local/ports.ts'
import { CLICKHOUSE_USER, startClickHouse } from '../../../deploy/local/stores/clickhouse.ts'
import { keepRestartable, SERVER_PASSWORD, type TestService } from '../services/services.ts'
import { openSoftenedPort } from './softened-port.ts'

/** Name of the cluster in the configuration of every node. */
export const TEST_CLUSTER = 'shards'

/**
 * Servers that are the shards of one cluster, each with one replica. Its URL is as in CLICKHOUSE_URL, its process the first
 * shard.
 */
export interface ClickHouseCluster extends TestService {
  readonly shards: readonly TestService[]
}

/** Options of `startClickHouseCluster`. */
interface ClickHouseClusterOptions {
  readonly shards?: number
  /** Further elements of the configuration of each node. */
  readonly config?: string
  readonly memoryBytes?: number
}

/** Starts the shards of a cluster on free ports of this machine, with their data in a new directory. */
export async function startClickHouseCluster({
  shards: count = 2,
  config = '',
  memoryBytes,
}: ClickHouseClusterOptions = {}): Promise<ClickHouseCluster> {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-cluster-'))
  const ports: { readonly http: number; readonly tcp: number }[] = []
  while (ports.length < count) ports.push({ http: await freePort(), tcp: await freePort() })
  const toOthers = await Promise.all(ports.map(({ tcp }) => openSoftenedPort(tcp)))
  const clusterOf = (shard: number) => {
    // A server knows its own shard by its own port.
    const members = ports.map(({ tcp }, i) => shardElement(i === shard ? tcp : (toOthers[i]?.port ?? 0))).join('')
    return `<remote_servers><${TEST_CLUSTER}>${members}</${TEST_CLUSTER}></remote_servers>`
  }
  const started = await Promise.allSettled(
    ports.map(({ http, tcp }, i) =>
      keepRestartable(passOn =>
        startClickHouse({
          dir: join(dir, `shard-${i}`),
          port: http,
          password: SERVER_PASSWORD,
          node: { tcpPort: tcp, config: `${clusterOf(i)}${macros(i)}${config}` },
          ...(memoryBytes && { memoryBytes }),
          log: passOn,
        }),
      ),
    ),
  )
  const shards = started.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []))
  const stop = async () => {
    await Promise.all(shards.map(shard => shard.stop()))
    await Promise.all(toOthers.map(port => port.close()))
    await rm(dir, { recursive: true, force: true, maxRetries: 3 })
  }
  const failure = started.find(result => result.status === 'rejected')
  if (failure !== undefined) {
    await stop()
    throw failure.reason
  }
  const [first] = shards
  const onAll = async (work: (shard: TestService) => Promise<void>) => void (await Promise.all(shards.map(work)))
  return {
    url: shards.map(shard => shard.url).join(','),
    shards,
    get pid() {
      return first?.pid ?? 0
    },
    kill9: () => onAll(shard => shard.kill9()),
    restart: () => onAll(shard => shard.restart()),
    stop,
  }
}

function shardElement(tcpPort: number): string {
  return `<shard><replica><host>127.0.0.1</host><port>${tcpPort}</port>
    <user>${CLICKHOUSE_USER}</user><password>${SERVER_PASSWORD}</password></replica></shard>`
}

function macros(shard: number): string {
  return `<macros><shard>${shard}</shard><replica>0</replica></macros>`
}
