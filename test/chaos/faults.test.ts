import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { DEFAULT_SCRUBBING, type ScrubbingRule } from '../../schemas/records/scrubbing.ts'
import { MIB, MINUTE_MS } from '../../schemas/units.ts'
import { createDirectory } from '../../shared/directory/directory.ts'
import { type Clients, startClients } from '../support/chaos/clients.ts'
import { compareLedger, untilSettled } from '../support/chaos/compare-ledger.ts'
import { PROCESS_FAULTS, PROMOTIONS, REDIS_FAULTS, SERVER_FAULTS } from '../support/chaos/faults.ts'
import { type Installation, startInstallation } from '../support/chaos/installation.ts'
import { DROPPED_NAME, WITH_DROPPED_SPANS } from '../support/chaos/payloads.ts'
import { runFaults } from '../support/chaos/run-faults.ts'
import { lasting } from '../support/length.ts'

const MINUTES = lasting('CHAOS_MINUTES', { nightly: 10, else: 1 })
const SEED = Number(process.env.CHAOS_SEED || Math.floor(Math.random() * 2 ** 31))
const LEAST_FAULTS_PER_MINUTE = 10
/** Requests per second of each kind of payload. */
const RATE = 8
/** Time between two changes of rules, in which batches begin and end. */
const CHANGE_MS = 3_000
const DISK_BYTES = 768 * MIB
const RECOVERY_DEADLINE_MS = 60_000
const SETTLE_DEADLINE_MS = 120_000

let installation: Installation
let clients: Clients

beforeAll(async () => {
  installation = await startInstallation({ edges: 2, workers: 2, diskBytes: DISK_BYTES, isReplicated: true })
})

afterAll(async () => {
  await clients?.stop()
  await installation?.stop()
})

/** Rules that replace values of the spans that clients send, each in another way. */
const RULES: readonly (readonly ScrubbingRule[])[] = [
  [{ name: 'people', values: ['email'], action: 'mask' }, ...DEFAULT_SCRUBBING],
  [{ name: 'all', keys: ['customer', 'api key'], action: 'hash' }],
  [],
]

/** Names of the rule that drops spans. It is always there, by one name or the other. */
const DROP_RULES = ['one', 'other'] as const

/** Changes the rules of scrubbing and of dropping again and again. `stop` returns how often. */
async function startChangingRules({ directory: redis, secrets: { workspaceId } }: Installation) {
  const directory = createDirectory(redis)
  const stopping = new AbortController()
  const author = () => ({ by: null, now: Date.now() })
  let dropping = 0
  const changeDropping = async (changes: number) => {
    const rules = [{ name: DROP_RULES[changes % 2] as string, names: [DROPPED_NAME] }]
    const replaced = await directory.replaceDropping({ workspaceId, revision: dropping, rules }, author())
    dropping = typeof replaced === 'number' ? replaced : replaced.revision
  }
  await changeDropping(0)
  const change = async () => {
    let [changes, revision] = [0, 0]
    while (!stopping.signal.aborted) {
      const rules = [...(RULES[changes++ % RULES.length] ?? [])]
      const replaced = await directory.replaceScrubbing({ workspaceId, revision, rules }, author())
      revision = typeof replaced === 'number' ? replaced : replaced.revision
      await changeDropping(changes)
      await delay(CHANGE_MS, undefined, { signal: stopping.signal }).catch(() => undefined) // ended by `stop`
    }
    return changes
  }
  const changes = change()
  return {
    stop: () => {
      stopping.abort()
      return changes
    },
  }
}

/** Returns by which rules spans were dropped, and whether they are two for five spans that are stored, as each export has them. */
async function droppedSpans({ clickhouse }: Installation): Promise<unknown> {
  const query = `
    SELECT stored * 2 = counted * 5 AND counted > 0 AS dropped,
      (SELECT arraySort(groupUniqArrayArray(mapKeys(dropped))) FROM ingest_log) AS rules,
      (SELECT count() FROM spans WHERE NOT startsWith(workspace_id, 'burned:')) AS stored,
      (SELECT sum(arraySum(mapValues(dropped))) FROM ingest_log WHERE NOT startsWith(workspace_id, 'burned:')) AS counted`
  const [row] = await (await clickhouse.query({ query, format: 'JSONEachRow' })).json<Record<string, unknown>>()
  console.log(`dropped: ${JSON.stringify(row)}`)
  return { dropped: row?.dropped === 1, rules: row?.rules }
}

it('after faults of every process, server and network, what is stored is what the ledger of the clients states', async () => {
  console.log(`${MINUTES} minutes of faults; to repeat them: CHAOS_SEED=${SEED}`)
  if (installation.noDisks) console.log(`SKIPPED, no disk is filled: ${installation.noDisks}`)
  const changing = await startChangingRules(installation)
  const { edgeUrls, secrets } = installation
  clients = startClients({ edgeUrls, secrets, seed: SEED, rate: RATE, payloads: WITH_DROPPED_SPANS })
  const { ledger, builds } = clients
  const servers = [...SERVER_FAULTS, ...REDIS_FAULTS, ...PROMOTIONS, ...PROMOTIONS].filter(
    ({ kind }) => installation.noDisks === undefined || !kind.endsWith('full disk'),
  )
  const forMs = MINUTES * MINUTE_MS
  const counts = await Promise.all([
    runFaults(installation, PROCESS_FAULTS, { seed: SEED, forMs, print: text => console.log(`process ${text}`) }),
    runFaults(installation, servers, { seed: SEED + 1, forMs, print: text => console.log(`server  ${text}`) }),
  ])
  const faults = Object.assign({}, ...counts) as Record<string, number>
  console.log(`faults: ${JSON.stringify(faults)}`)

  expect(await changing.stop()).toBeGreaterThan(MINUTES)
  await clients.untilServed(RECOVERY_DEADLINE_MS)
  await clients.stop()
  for (const build of builds.sent) {
    if (build.isUploaded && !build.isCompleted) await builds.complete(build, SETTLE_DEADLINE_MS)
  }
  console.log(`ledger: ${JSON.stringify(ledger.summary())}, builds: ${builds.sent.length}`)
  console.log(`answers: ${JSON.stringify(ledger.answers())}`)
  await untilSettled(installation, SETTLE_DEADLINE_MS)
  expect(await compareLedger(installation, ledger, builds.sent)).toEqual([])
  expect(await droppedSpans(installation)).toEqual({ dropped: true, rules: [...DROP_RULES] })
  expect(Object.keys(ledger.answers()).filter(answer => /^5/.test(answer) && answer !== '503')).toEqual([])
  expect(installation.unexpectedEnds()).toEqual([])
  const total = Object.values(faults).reduce((sum, count) => sum + count, 0)
  expect(total).toBeGreaterThanOrEqual(LEAST_FAULTS_PER_MINUTE * MINUTES)
})
