import type { ClickHouseClient } from '../../clickhouse/client.ts'
import { deleteCountedRows } from '../../clickhouse/queries/retention/delete-counted-rows.ts'
import {
  selectIdentifiedSessions,
  selectSessionLetters,
  selectSessionNames,
  selectSessionSurfaces,
} from '../../clickhouse/queries/sessions/select-erased.ts'
import { ERASED_TABLES, endOfPart } from '../../clickhouse/queries/sessions/session-key.ts'
import { type PurgeLettersDeps, purgeLetters } from '../../letters/purge-letters.ts'
import type { Erasure } from '../../schemas/records/erasure.ts'
import { MIB } from '../../schemas/units.ts'
import type { ErasureStore } from '../../shared/directory/erasures.ts'
import type { Naming } from '../../shared/directory/findings/mentions.ts'
import { replayPrefix } from '../../shared/object-store/object-keys.ts'
import type { ObjectStore } from '../../shared/object-store/types.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import type { ObjectDeleter } from './delete-objects.ts'

/** Dependencies of an erasure. */
export interface ErasePersonDeps {
  readonly clickhouse: ClickHouseClient
  readonly erasures: Pick<ErasureStore, 'putErasure' | 'addErasedSessions' | 'erasedSessions'>
  /** Removes the comments that name a person, and returns their number. `onStep` runs between two steps. */
  readonly eraseComments: (workspaceId: string, naming: Naming, onStep: () => Promise<void>) => Promise<number>
  /** Removes the alerts that name a person. */
  readonly eraseAlerts: (workspaceId: string, naming: Naming) => Promise<void>
  readonly objects: Pick<ObjectDeleter, 'delete'>
  readonly store: Pick<ObjectStore, 'list' | 'head' | 'get' | 'put' | 'deleteMany'>
  readonly claims: PurgeLettersDeps['claims']
  /** Returns the time before which everything that a workspace had accepted is settled, in Unix ms of Redis. */
  readonly settledBeforeMs: (workspaceId: string) => Promise<number>
  readonly redisTimeMs: () => Promise<number>
  readonly now: () => number
  /** Throws when this process is stopping or is not elected any more. Runs between two steps. */
  readonly assertElected: () => Promise<void>
}

/** An erasure with more sessions has an identifier that many people share, such as `anonymous`. */
const ERASED_SESSIONS_MAX = 100_000
/** Bytes of the ids of these sessions, which a worker holds in memory. */
const ERASED_SESSION_BYTES = 64 * MIB
const LETTERS_AT_ONCE = 500
/** Identifiers, addresses and names that comments are searched for. */
const NAMES_MAX = 200
const STATEMENT_TIMEOUT_MS = 600_000

/**
 * Works on an erasure as far as it can, and returns its new state. Everything that is stored is deleted but the identities,
 * then, when all that was accepted before is settled, everything is deleted again, and the identities with it. The bytes of rows
 * are still on the disk then: `rewriteErased` ends the erasure. The progress is stored after each step, so that another worker
 * continues where this one was killed. Rows are counted before they are deleted: a step that is repeated counts what it still
 * finds. Throws the errors of the stores.
 */
export async function erasePerson(deps: ErasePersonDeps, erasure: Erasure): Promise<Erasure> {
  if (erasure.state === 'deleting') {
    // Read before anything is looked for: what is accepted from now on is new data.
    const settledAfterMs = erasure.settledAfterMs ?? (await deps.redisTimeMs())
    const deleted = await deleteOnce(deps, await save(deps, { ...erasure, settledAfterMs }))
    if (deleted.state === 'failed') return deleted
    return erasePerson(deps, await save(deps, { ...deleted, state: 'settling', position: null }))
  }
  if (erasure.state === 'settling') {
    if ((await deps.settledBeforeMs(erasure.workspaceId)) <= (erasure.settledAfterMs ?? 0)) return erasure
    return erasePerson(deps, await save(deps, { ...erasure, state: 'deleting_again' }))
  }
  if (erasure.state === 'deleting_again') {
    const deleted = await deleteOnce(deps, erasure)
    if (deleted.state === 'failed') return deleted
    const hasDeleted = Object.keys(deleted.rows).length > 0
    return save(deps, hasDeleted ? { ...deleted, state: 'waiting_for_rewrite' } : doneAt(deleted, deps))
  }
  return erasure
}

/** Returns the erasure as it is when its bytes have left the disk. */
export function doneAt(erasure: Erasure, { now }: Pick<ErasePersonDeps, 'now'>): Erasure {
  return { ...erasure, state: 'done', completedAt: new Date(now()).toISOString() }
}

async function save(deps: ErasePersonDeps, erasure: Erasure): Promise<Erasure> {
  await deps.assertElected()
  await deps.erasures.putErasure(erasure)
  return erasure
}

/** Deletes everything of the sessions that are known now and before. */
async function deleteOnce(deps: ErasePersonDeps, begun: Erasure): Promise<Erasure> {
  let erasure = begun
  if (erasure.position === null) {
    const found = await findSessions(deps, erasure)
    await deps.erasures.addErasedSessions(erasure, found ?? [])
    const sessions = (await deps.erasures.erasedSessions(erasure)).length
    if (found === undefined || sessions > ERASED_SESSIONS_MAX) {
      const completedAt = new Date(deps.now()).toISOString()
      return save(deps, { ...erasure, state: 'failed', failure: 'too_many_sessions', completedAt })
    }
    erasure = await save(deps, { ...erasure, sessions, position: 0 })
  }
  const sessionIds = await deps.erasures.erasedSessions(erasure)
  if (erasure.state === 'deleting_again' && erasure.position === 0)
    erasure = await eraseMentions(deps, erasure, sessionIds)
  for (let begin = erasure.position ?? 0; begin < sessionIds.length; ) {
    const end = endOfPart(sessionIds, begin)
    erasure = await deleteSessions(deps, erasure, sessionIds.slice(begin, end))
    erasure = await save(deps, { ...erasure, position: end })
    begin = end
  }
  return erasure
}

/** Returns the sessions of the subject. Undefined if they are too many. */
async function findSessions({ clickhouse }: ErasePersonDeps, { workspaceId, subject }: Erasure) {
  if (subject === undefined) return []
  if (subject.kind === 'session') return [subject.sessionId]
  const { identifier, sourceType } = subject
  const key = { workspaceId, identifier, sourceType }
  const max = { sessions: ERASED_SESSIONS_MAX, idBytes: ERASED_SESSION_BYTES }
  return selectIdentifiedSessions(clickhouse, key, max, deadline())
}

/**
 * Deletes objects and rows of sessions. The objects go first, because the rows lead to them. Identities are left to the second
 * pass: they lead to the sessions, also when the directory is restored or moved meanwhile, without what was found.
 */
async function deleteSessions(deps: ErasePersonDeps, begun: Erasure, sessionIds: readonly string[]): Promise<Erasure> {
  const { clickhouse } = deps
  const { workspaceId, id, state, position } = begun
  let erasure = begun
  for (const { surfaceId, sessionId } of await selectSessionSurfaces(clickhouse, workspaceId, sessionIds, deadline())) {
    for await (const page of deps.store.list(replayPrefix({ workspaceId, surfaceId, sessionId }))) {
      await deps.assertElected()
      await deps.objects.delete(
        'replays',
        page.map(({ key }) => key),
      )
      const objectBytes = erasure.objectBytes + page.reduce((sum, { size }) => sum + size, 0)
      erasure = { ...erasure, objects: erasure.objects + page.length, objectBytes }
    }
  }
  const letters = await eraseLetters({ ...deps, objects: deps.store }, { workspaceId, sessionIds }, deadline())
  const dead_letters = (erasure.rows.dead_letters ?? 0) + letters.purged
  erasure = await save(deps, dead_letters > 0 ? { ...erasure, rows: { ...erasure.rows, dead_letters } } : erasure)
  // In the first pass they are left to the second one, which begins when they are settled.
  if (letters.replaying > 0 && state === 'deleting_again') throw new TransientError('dead letters are being replayed')
  for (const { table, isSource } of ERASED_TABLES) {
    if (table === 'session_identities' && state === 'deleting') continue
    await deps.assertElected()
    const step = `${id}:${state}:${position}:${table}`
    const onCounted = async (rows: number, shard: number) => {
      erasure = await save(deps, countStep(erasure, { table, step: shard === 0 ? step : `${step}:${shard}`, rows }))
    }
    const deletion = {
      table,
      where: 'workspace_id = {workspaceId: String} AND session_id IN {sessionIds: Array(String)}',
      params: { workspaceId, sessionIds },
      isSource,
      reason: 'erased',
      id: step,
      onCounted,
    } as const
    await deleteCountedRows(deps.clickhouse, deletion, deadline())
  }
  return erasure
}

/** Removes the comments and the alerts that name the person. The identities have the names, so these go first. */
async function eraseMentions(deps: ErasePersonDeps, erasure: Erasure, sessionIds: readonly string[]): Promise<Erasure> {
  const { workspaceId, id: erasureId, subject } = erasure
  const phrases = new Set(subject?.kind === 'identifier' ? [subject.identifier] : [])
  for (let begin = 0; begin < sessionIds.length && phrases.size < NAMES_MAX; ) {
    const end = endOfPart(sessionIds, begin)
    const part = { workspaceId, sessionIds: sessionIds.slice(begin, end) }
    for (const name of await selectSessionNames(deps.clickhouse, part, NAMES_MAX, deadline())) phrases.add(name)
    begin = end
  }
  const naming = { phrases: [...phrases].slice(0, NAMES_MAX), ids: new Set(sessionIds), erasureId }
  const comments = await deps.eraseComments(workspaceId, naming, deps.assertElected)
  await deps.eraseAlerts(workspaceId, naming)
  return comments === 0 ? erasure : save(deps, { ...erasure, comments: erasure.comments + comments })
}

/** Result of erasing dead letters. */
interface ErasedLetters {
  readonly purged: number
  /** Letters that wait in a queue, because they are being replayed. */
  readonly replaying: number
}

/** Erases the dead letters whose request names one of these sessions, with their bytes. */
async function eraseLetters(
  deps: PurgeLettersDeps,
  key: { readonly workspaceId: string; readonly sessionIds: readonly string[] },
  signal: AbortSignal,
): Promise<ErasedLetters> {
  let [purged, replaying] = [0, 0]
  for (;;) {
    const page = { limit: LETTERS_AT_ONCE, offset: replaying }
    const keys = await selectSessionLetters(deps.clickhouse, key, page, signal)
    if (keys.length === 0) return { purged, replaying }
    const step = await purgeLetters(deps, key.workspaceId, { keys }, { limit: LETTERS_AT_ONCE }, signal)
    purged += step.purged
    replaying += step.skipped.filter(({ reason }) => reason === 'replaying').length
  }
}

/**
 * Adds the rows of a step. If the step is repeated after a crash, the same number means that they were counted, and not yet
 * deleted. A smaller number means that they were deleted, and that these have arrived since.
 */
function countStep(
  erasure: Erasure,
  { table, step, rows }: { readonly table: string; readonly step: string; readonly rows: number },
): Erasure {
  const before = erasure.counted?.step === step ? erasure.counted.rows : 0
  const added = rows >= before ? rows - before : rows
  return { ...erasure, counted: { step, rows }, rows: { ...erasure.rows, [table]: (erasure.rows[table] ?? 0) + added } }
}

const deadline = () => AbortSignal.timeout(STATEMENT_TIMEOUT_MS)
