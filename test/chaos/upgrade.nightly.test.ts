import { setTimeout as delay } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { ROOT } from '../../deploy/local/config.ts'
import { DECODER_VERSION } from '../../workers/decode/decoder-version.ts'
import { type Balancer, startBalancer } from '../support/chaos/balancer.ts'
import { startClients } from '../support/chaos/clients.ts'
import { compareLedger, untilSettled } from '../support/chaos/compare-ledger.ts'
import { type ChaosProcess, type Installation, startInstallation } from '../support/chaos/installation.ts'
import { changedTree } from '../support/chaos/product-tree.ts'

/** The newer version is this one with another number of its decoders. A released version takes the place of this one. */
const NEWER = {
  file: 'workers/decode/decoder-version.ts',
  changes: [[`= ${DECODER_VERSION}\n`, `= ${DECODER_VERSION + 1}\n`]],
} as const
/** Requests per second of each kind of payload. */
const RATE = 3
const SEED = 1
/** Time under load with the processes of one version. */
const STAY_MS = 3_000
const SERVED_DEADLINE_MS = 60_000
const SETTLE_DEADLINE_MS = 120_000

it('an upgrade and the way back under load refuse nothing, lose nothing and store nothing twice', async () => {
  const newer = await changedTree(NEWER)
  const installation = await startInstallation({ edges: 0, workers: 0 })
  const balancer = await startBalancer()
  const { secrets } = installation
  try {
    let running = await startAll(installation, balancer)
    const clients = startClients({ edgeUrls: [balancer.url], secrets, seed: SEED, rate: RATE })
    const { ledger, builds } = clients
    const replace = async (tree: string, name: string) => {
      running = await rollIn(installation, balancer, running, tree, name)
      await clients.untilServed(SERVED_DEADLINE_MS)
      await delay(STAY_MS)
      console.log(`${name} is rolled in: ${JSON.stringify(ledger.answers())}`)
    }
    await clients.untilServed(SERVED_DEADLINE_MS)
    await delay(STAY_MS)
    await replace(newer.path, 'N+1')
    await replace(ROOT, 'N again')
    await clients.stop()
    await untilSettled(installation, SETTLE_DEADLINE_MS)
    console.log(`ledger: ${JSON.stringify(ledger.summary())}, builds: ${builds.sent.length}`)
    expect(await compareLedger(installation, ledger, builds.sent)).toEqual([])
    // 400 and 401 are the answers to the requests that have to be refused.
    expect(Object.keys(ledger.answers()).sort()).toEqual(['200', '400', '401'])
    expect(running.flatMap(({ member }) => member.unexpectedEnds)).toEqual([])
  } finally {
    await balancer.close()
    await installation.stop()
    await newer.remove()
  }
})

/** Starts two edges and two workers of this version. */
async function startAll(installation: Installation, balancer: Balancer): Promise<ChaosProcess[]> {
  const kinds = ['edge', 'edge', 'workers', 'workers'] as const
  const started = await Promise.all(
    kinds.map((kind, i) => installation.startProcess(kind, `${kind} ${i + 1} (N)`, ROOT)),
  )
  for (const { member } of started) if (member.port !== undefined) balancer.add(member.port)
  return started
}

/**
 * Replaces one process after the other by one of another version, as an orchestrator does. On the way to a newer version the
 * workers come first, on the way back the edges: older workers cannot read every payload of newer edges.
 */
async function rollIn(
  installation: Installation,
  balancer: Balancer,
  running: readonly ChaosProcess[],
  tree: string,
  version: string,
): Promise<ChaosProcess[]> {
  const next: ChaosProcess[] = []
  const isNewer = tree !== ROOT
  const order = running.toSorted((a, b) => Number(isEdge(a) === isNewer) - Number(isEdge(b) === isNewer))
  for (const [i, { member }] of order.entries()) {
    const kind = member.port === undefined ? 'workers' : 'edge'
    const successor = await installation.startProcess(kind, `${kind} ${i + 1} (${version})`, tree)
    if (successor.member.port !== undefined) balancer.add(successor.member.port)
    if (member.port !== undefined) await balancer.drain(member.port)
    await member.stop()
    next.push(successor)
  }
  return next
}

const isEdge = ({ member }: ChaosProcess) => member.port !== undefined
