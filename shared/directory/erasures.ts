import { createHmac, randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import { type Erasure, type ErasureSubject, erasureSchema } from '../../schemas/records/erasure.ts'
import { pagesOf } from '../concurrency/pages.ts'
import { type Author, writeChange } from './changes/change-log.ts'
import { decideOnce, NOTHING } from './creations.ts'
import { ensureReceiptSecret } from './receipt-secret.ts'
import { directoryKeys as keys, parseRecord, upkeepKeys } from './record.ts'
import { type ListPage, listNewest } from './sorted-index.ts'
import { type Command, commitIf } from './transaction.ts'

/** Erasures of a workspace that may be deleting at once. */
export const ACTIVE_ERASURES_MAX = 100
/** Receipts of erasures that are kept for a workspace. Beyond it, a new erasure removes the oldest that is over. */
export const ERASURES_KEPT = 10_000
/** Erasures that are read at once. */
const ERASURES_PAGE = 500
const SESSIONS_PAGE = 1_000

/** Stores the erasures of a workspace (docs/api/retention.md#erasures). */
export interface ErasureStore {
  /**
   * Stores an erasure and returns it, or the one that is deleting the same subject. Returns `too_many_erasures` when too many
   * are deleting, and `too_many_waiting` when all that are kept wait for the night.
   */
  createErasure(request: ErasureRequest): Promise<Erasure | 'too_many_erasures' | 'too_many_waiting'>
  erasure(workspaceId: string, id: string): Promise<Erasure | undefined>
  /** Returns a page, newest first. */
  erasures(workspaceId: string, page: ListPage): Promise<Erasure[]>
  /** Stores the progress of an erasure. One that has deleted everything loses its subject and its sessions. */
  putErasure(erasure: Erasure): Promise<void>
  /** Returns up to `limit` erasures of all workspaces that are deleting, the oldest first. Only for the workers. */
  activeErasures(limit: number): Promise<Erasure[]>
  /** Returns all erasures of all workspaces that wait for the night. Only for the workers. */
  waitingErasures(): Promise<Erasure[]>
  /** Stores the end of an erasure that waited. There may be a later one of the same subject. */
  endWaiting(erasure: Erasure): Promise<void>
  addErasedSessions(erasure: Erasure, sessionIds: readonly string[]): Promise<void>
  /** Returns the sessions of an erasure in progress, in the order of their bytes. */
  erasedSessions(erasure: Erasure): Promise<string[]>
}

/** A new erasure. */
interface ErasureRequest {
  readonly workspaceId: string
  readonly subject: ErasureSubject
  readonly now: number
  /** Who creates it; an operator if absent. */
  readonly author?: Author | undefined
}

/** Creates the part of the directory that stores erasures. */
export function createErasureStore(redis: Redis): ErasureStore {
  const load = (workspaceId: string, ids: readonly string[]) => loadErasures(redis, workspaceId, ids)
  return {
    async createErasure({ workspaceId, subject, now, author }) {
      const subjectHash = hashSubject(await ensureReceiptSecret(redis), workspaceId, subject)
      const activeKey = keys.activeErasures(workspaceId)
      return decideOnce<Erasure | 'too_many_erasures' | 'too_many_waiting'>(redis, author?.once, async () => {
        const known = await redis.hget(activeKey, subjectHash)
        const [present] = known === null ? [] : await load(workspaceId, [known])
        if (present) return { result: present, transaction: NOTHING }
        if ((await redis.hlen(activeKey)) >= ACTIVE_ERASURES_MAX) return { result: 'too_many_erasures' }
        const erasure = newErasure(workspaceId, subject, subjectHash, { createdBy: author?.by ?? null, now })
        const guards = [['HGET', activeKey, known ?? '', subjectHash] as const]
        const logged = writeChange(workspaceId, author, { action: 'erasure.created', subject: erasure.id })
        const removed = await removeOldest(redis, workspaceId)
        if (removed === undefined) return { result: 'too_many_waiting' }
        const commands = [...writeErasure(erasure), ...removed, ...logged]
        return { result: erasure, transaction: { guards, commands } }
      })
    },
    erasure: async (workspaceId, id) => (await load(workspaceId, [id]))[0],
    erasures: (workspaceId, page) => listNewest(redis, keys.erasures(workspaceId), page, ids => load(workspaceId, ids)),
    async putErasure(erasure) {
      await commitIf(redis, { guards: [], commands: writeErasure(erasure) })
    },
    activeErasures: limit => loadOldest(redis, keys.dueErasures, limit),
    async endWaiting(erasure) {
      const { workspaceId, id } = erasure
      const commands: Command[] = [
        ['SET', keys.erasure(workspaceId, id), JSON.stringify(erasureSchema.parse(erasure))],
        ['ZREM', keys.waitingErasures, `${workspaceId}/${id}`],
      ]
      await commitIf(redis, { guards: [], commands })
    },
    waitingErasures: () => loadOldest(redis, keys.waitingErasures, 0),
    async addErasedSessions({ workspaceId, id }, sessionIds) {
      for (const page of pagesOf(sessionIds, SESSIONS_PAGE))
        await redis.sadd(upkeepKeys.erasedSessions(workspaceId, id), ...page)
    },
    async erasedSessions({ workspaceId, id }) {
      const found = new Set<string>()
      let cursor = '0'
      do {
        const [next, members] = await redis.sscan(
          upkeepKeys.erasedSessions(workspaceId, id),
          cursor,
          'COUNT',
          SESSIONS_PAGE,
        )
        cursor = next
        for (const member of members) found.add(member)
      } while (cursor !== '0')
      return [...found].sort()
    },
  }
}

async function loadErasures(
  redis: Redis,
  workspaceId: string,
  ids: readonly string[],
): Promise<(Erasure | undefined)[]> {
  const at = ids.map(id => keys.erasure(workspaceId, id))
  const texts = at.length === 0 ? [] : await redis.mget(at)
  return texts.map((text, i) => (text === null ? undefined : parseRecord(at[i] ?? '', text, erasureSchema)))
}

/** Returns the oldest erasures of an index of all workspaces; all of them if `limit` is 0. */
async function loadOldest(redis: Redis, index: string, limit: number): Promise<Erasure[]> {
  const found: Erasure[] = []
  for (const page of pagesOf(await redis.zrange(index, 0, String(limit - 1)), ERASURES_PAGE)) {
    const at = page.map(member => member.split('/') as [string, string])
    const texts = await redis.mget(at.map(([workspaceId, id]) => keys.erasure(workspaceId, id)))
    for (const [i, text] of texts.entries()) {
      if (text !== null) found.push(parseRecord(page[i] ?? '', text, erasureSchema))
      else await redis.zrem(index, page[i] ?? '')
    }
  }
  return found
}

function newErasure(
  workspaceId: string,
  subject: ErasureSubject,
  subjectHash: string,
  { createdBy, now }: Pick<Erasure, 'createdBy'> & Pick<ErasureRequest, 'now'>,
): Erasure {
  return {
    version: 1,
    id: `ers_${randomBytes(10).toString('hex')}`,
    workspaceId,
    kind: subject.kind,
    subject,
    subjectHash,
    createdAt: new Date(now).toISOString(),
    createdBy,
    state: 'deleting',
    settledAfterMs: null,
    position: null,
    sessions: 0,
    rows: {},
    counted: null,
    comments: 0,
    objects: 0,
    objectBytes: 0,
    completedAt: null,
    failure: null,
  }
}

/** Returns the commands that store an erasure and its indexes. One that has deleted everything has no sessions and no subject. */
export function writeErasure(erasure: Erasure): Command[] {
  const { workspaceId, id, subjectHash, createdAt, state } = erasure
  const isWaiting = state === 'waiting_for_rewrite'
  const isOver = state === 'done' || state === 'failed' || isWaiting
  const { subject: _, ...withoutSubject } = erasure
  const record = erasureSchema.parse(isOver ? withoutSubject : erasure)
  const createdAtMs = Date.parse(createdAt)
  const member = `${workspaceId}/${id}`
  return [
    ['SET', keys.erasure(workspaceId, id), JSON.stringify(record)],
    ['ZADD', keys.erasures(workspaceId), createdAtMs, id],
    isWaiting ? ['ZADD', keys.waitingErasures, createdAtMs, member] : ['ZREM', keys.waitingErasures, member],
    ...(isOver
      ? ([
          ['HDEL', keys.activeErasures(workspaceId), subjectHash],
          ['ZREM', keys.dueErasures, member],
          ['DEL', upkeepKeys.erasedSessions(workspaceId, id)],
        ] as const)
      : ([
          ['HSET', keys.activeErasures(workspaceId), subjectHash, id],
          ['ZADD', keys.dueErasures, createdAtMs, member],
        ] as const)),
  ]
}

/**
 * Returns the commands that remove the oldest receipt that is over when there are too many, or undefined if the oldest ones still
 * wait for the night.
 */
async function removeOldest(redis: Redis, workspaceId: string): Promise<Command[] | undefined> {
  const index = keys.erasures(workspaceId)
  if ((await redis.zcard(index)) < ERASURES_KEPT) return []
  const oldest = await loadErasures(redis, workspaceId, await redis.zrange(index, 0, String(2 * ACTIVE_ERASURES_MAX)))
  const receipt = oldest.find(erasure => erasure?.state === 'done' || erasure?.state === 'failed')
  return (
    receipt && [
      ['DEL', keys.erasure(workspaceId, receipt.id)],
      ['ZREM', index, receipt.id],
    ]
  )
}

/**
 * Returns the keyed hash of a subject, by which a repeated request is recognized and a receipt proves for whom it is. Without
 * the secret of the installation it cannot be computed from a list of identifiers.
 */
function hashSubject(secret: Buffer, workspaceId: string, subject: ErasureSubject): string {
  const words =
    subject.kind === 'session'
      ? [subject.sessionId]
      : [subject.identifier, ...(subject.sourceType ? [subject.sourceType] : [])]
  return createHmac('sha256', secret)
    .update(JSON.stringify(['erasure', workspaceId, subject.kind, ...words]))
    .digest('hex')
}
