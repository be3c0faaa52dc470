import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../../deploy/local/ports.ts'
import { startChild } from '../../../deploy/local/processes/child-process.ts'
import { until } from '../until.ts'

/** Where Debian's package `zookeeper` has its classes. */
const CLASSES = '/usr/share/java'

/** A ZooKeeper of one server. */
export interface ZooKeeper {
  /** Element of the configuration of ClickHouse. */
  readonly config: string
  /** Returns the number of nodes that it keeps. */
  nodes(): Promise<number>
  stop(): Promise<void>
}

/** Returns why no ZooKeeper can be started here, or undefined. */
export function zooKeeperFault(): string | undefined {
  return existsSync(join(CLASSES, 'zookeeper.jar')) ? undefined : "Debian's package zookeeper is not installed"
}

/** Starts ZooKeeper on a free port of this machine, with its data in a new directory. */
export async function startZooKeeper(): Promise<ZooKeeper> {
  const dir = await mkdtemp(join(tmpdir(), 'penstock-zookeeper-'))
  const port = await freePort()
  const file = join(dir, 'zoo.cfg')
  const lines = [
    'tickTime=2000',
    `dataDir=${dir}`,
    `clientPort=${port}`,
    'clientPortAddress=127.0.0.1',
    'admin.enableServer=false',
  ]
  await writeFile(file, lines.join('\n'))
  const child = await startChild({
    command: 'java',
    args: ['-Xmx128m', '-cp', `${CLASSES}/*`, 'org.apache.zookeeper.server.quorum.QuorumPeerMain', file],
    log: () => {},
  })
  await until('ZooKeeper listens', () => child.hasExited || accepts(port))
  if (child.hasExited) throw new Error('ZooKeeper ended while starting')
  return {
    config: `<zookeeper><node><host>127.0.0.1</host><port>${port}</port></node></zookeeper>`,
    nodes: () => countNodes(port),
    async stop() {
      await child.stop()
      await rm(dir, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

/** Asks with the only command that ZooKeeper answers by default. */
async function countNodes(port: number): Promise<number> {
  const socket = connect(port, '127.0.0.1')
  socket.end('srvr')
  let answer = ''
  for await (const chunk of socket) answer += chunk
  return Number(/^Node count: (\d+)$/m.exec(answer)?.[1])
}

function accepts(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
