import type { Installation, QueueMark } from '../../schemas/records/installation.ts'
import { changeInstallation, readInstallation } from '../directory/installation-record.ts'
import { withDeadline } from '../runtime/lifecycle.ts'
import { checkQueues, isSame, type Known, type QueuesRead, readQueues } from './check-queues.ts'
import type { Claim, ClaimedStore } from './claimed-store.ts'
import { type BothRedis, newInstallation } from './queue-losses.ts'

/** The stores of an installation as one process reaches them. */
export interface CheckedStores extends BothRedis {
  /** The stores besides both Redis that the process uses. */
  readonly stores: readonly ClaimedStore[]
  /** Whether the process writes what is missing. Else it only compares. */
  readonly mayClaim: boolean
}

/** What a process uses. */
export type StoreName = ClaimedStore['name'] | 'directory' | 'queues'

/** The outcome of a check. */
export interface Checked extends Known {
  /** Why the stores do not belong together, in one sentence, or undefined. */
  readonly fault: string | undefined
  /** The stores that were found to belong to the installation. The others do not answer. */
  readonly verified: readonly StoreName[]
}

/** A store that does not answer must not hold up the comparison of the others. */
const READ_WITHIN_MS = 5_000

const NAMES: Readonly<Record<StoreName, string>> = {
  directory: 'the Redis of the directory',
  queues: 'the Redis of the queues',
  clickhouse: 'ClickHouse',
  bucket: 'the bucket',
}

/** Claims of stores by their names. A store that does not answer is absent, and one without an id has undefined. */
type Claims = ReadonlyMap<StoreName, Claim | undefined>

/**
 * Compares the ids of all stores that answer, and writes what is missing in those that are new. Throws only if nothing can be
 * compared, because the directory does not answer and the process does not know its id.
 */
export async function checkInstallation(stores: CheckedStores, known: Known): Promise<Checked> {
  // First: a store that another process claims meanwhile is noted there afterwards.
  const found = await answerOf(readInstallation(stores.directory))
  const [queuesRead, others] = await Promise.all([
    answerOf(readQueues(stores, known)),
    Promise.all(stores.stores.map(async store => [store.name, await answerOf(store.read())] as const)),
  ])
  const claims: Claims = new Map<StoreName, Claim | undefined>([
    ...(queuesRead.ok ? [['queues', claimOfMarks(queuesRead.value.marks)] as const] : []),
    ...others.flatMap(([name, read]) => (read.ok ? [[name, read.value] as const] : [])),
  ])
  const root = found.ok ? found.value : known.installation
  if (!found.ok && root === undefined) throw found.error
  const absent = (fault: string): Checked => ({ ...known, fault, verified: [] })
  if (root === undefined) {
    const other = [...claims].find(([, claim]) => claim !== undefined)
    const id = other?.[1]?.id ?? known.installation?.id
    // Another process that has begun meanwhile has made the installation before it claimed a store.
    if (id !== undefined && (await readInstallation(stores.directory)) !== undefined)
      return checkInstallation(stores, known)
    if (id !== undefined) return absent(emptyDirectory(other?.[0], id))
    if (!stores.mayClaim) return { ...known, fault: undefined, verified: [...claims.keys()] }
  }
  const installation = root ?? (await makeInstallation(stores))
  const stranger = [...claims].find(([, claim]) => claim !== undefined && claim.id !== installation.id)
  if (stranger !== undefined) return absent(differs(stranger[0], stranger[1]?.id ?? '', installation.id))
  const lost = [...claims].find(([name, claim]) => claim === undefined && hasClaimed(installation, name))
  if (lost !== undefined) return absent(hasNoId(lost[0], installation.id))
  if (!found.ok || !stores.mayClaim) return { ...known, installation, fault: undefined, verified: [...claims.keys()] }
  return claimMissing(stores, known, { installation, claims, queues: queuesRead.ok ? queuesRead.value : undefined })
}

/** Returns the reply of a store, or the error with which it did not answer. */
async function answerOf<T>(
  reply: Promise<T>,
): Promise<{ readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: unknown }> {
  try {
    return { ok: true, value: await withDeadline(reply, READ_WITHIN_MS, 'the store did not answer in time') }
  } catch (error) {
    return { ok: false, error }
  }
}

function claimOfMarks(marks: ReadonlyMap<number, QueueMark>): Claim | undefined {
  const [first] = marks.values()
  const ids = new Set([...marks.values()].map(({ installation }) => installation))
  if (first === undefined) return undefined
  return { id: [...ids].join(' and ') }
}

async function makeInstallation({ directory }: CheckedStores): Promise<Installation> {
  const made = newInstallation()
  return (await changeInstallation(directory, before => (before === undefined ? made : undefined))) ?? made
}

/** Queues that have lost their marks get a new epoch, so they are not compared here. */
function hasClaimed({ stores }: Installation, name: StoreName): boolean {
  return name !== 'queues' && name !== 'directory' && stores.includes(name)
}

interface Comparison {
  readonly installation: Installation
  readonly claims: Claims
  readonly queues: QueuesRead | undefined
}

async function claimMissing(
  stores: CheckedStores,
  known: Known,
  { installation: before, claims, queues }: Comparison,
): Promise<Checked> {
  let installation = before
  let marks = known.marks
  let seen = known.seen
  if (queues !== undefined) {
    const epochs = claims.get('clickhouse')?.epochs ?? {}
    const checked = await checkQueues(stores, { known, installation, queues, epochs })
    marks = checked.marks
    installation = checked.installation
    seen = checked.seen ?? seen
  }
  for (const store of stores.stores) {
    if (!claims.has(store.name)) continue
    const claim = claims.get(store.name)
    const own = { id: installation.id, epochs: installation.epochs }
    if (claim === undefined) {
      await store.claim(own)
      const read = await store.read()
      if (read?.id !== own.id) return { ...known, fault: differs(store.name, read?.id ?? '', own.id), verified: [] }
    } else if (claim.epochs !== undefined && !isSame(claim.epochs, own.epochs)) await store.replace(own)
    if (!installation.stores.includes(store.name)) installation = await addStore(stores, installation, store.name)
  }
  return { installation, marks, seen, fault: undefined, verified: ['directory', ...claims.keys()] }
}

async function addStore(
  { directory }: CheckedStores,
  installation: Installation,
  name: ClaimedStore['name'],
): Promise<Installation> {
  const changed = await changeInstallation(directory, current =>
    current === undefined || current.stores.includes(name)
      ? undefined
      : { ...current, stores: [...current.stores, name] },
  )
  return changed ?? installation
}

const ADOPT = 'correct the address, or run `penstock doctor --adopt` after a move'

function differs(name: StoreName, id: string, own: string): string {
  return `${NAMES[name]} belongs to installation ${id}, ${NAMES.directory} to ${own}: ${ADOPT}`
}

function hasNoId(name: StoreName, own: string): string {
  return `${NAMES[name]} has no installation id, although installation ${own} had claimed it: ${ADOPT}`
}

function emptyDirectory(name: StoreName | undefined, id: string): string {
  const holder = name === undefined ? 'this process' : NAMES[name]
  return `the directory is empty or another one, and ${holder} belongs to installation ${id}: restore its backup, or ${ADOPT}`
}
