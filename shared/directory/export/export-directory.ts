import type { Redis } from 'ioredis'
import type { Change } from '../../../schemas/records/change.ts'
import {
  manifestPointerSchema,
  receiptSecretSchema,
  releaseSchema,
  type Workspace,
} from '../../../schemas/records/directory.ts'
import type { Erasure } from '../../../schemas/records/erasure.ts'
import type { Directory } from '../directory.ts'
import { FINDING_ENTRIES_KEPT } from '../findings/activity.ts'
import { readInstallation } from '../installation-record.ts'
import { directoryKeys, parseRecord } from '../record.ts'
import { releaseKeys } from '../release-store.ts'
import { listNewest, walkNewest } from '../sorted-index.ts'
import { CHANGES_PER_LINE, type Line, MAPS_PER_LINE } from './lines.ts'

/** A directory, and the Redis that stores it. */
export interface ExportedDirectory {
  readonly redis: Redis
  readonly store: Directory
}

/**
 * Yields all records of the directory as lines. The ids of deleted surfaces that never had a key are left out, for which
 * nothing was ever stored.
 * Equal directories give equal lines. One page of records and the ids of a workspace's surfaces are in memory at a
 * time. Each record is as it was when it was read, so a concurrent change may be missing.
 */
export async function* exportDirectory(directory: ExportedDirectory): AsyncGenerator<Line> {
  let records = 0
  for await (const line of exportRecords(directory)) {
    records += 1
    yield line
  }
  yield { kind: 'end', record: { version: 1, records } }
}

async function* exportRecords({ redis, store }: ExportedDirectory): AsyncGenerator<Line> {
  const installation = await readInstallation(redis)
  if (installation) yield { kind: 'installation', record: installation }
  const secret = await redis.get(directoryKeys.receiptSecret)
  if (secret) {
    yield { kind: 'receipt-secret', record: parseRecord(directoryKeys.receiptSecret, secret, receiptSecretSchema) }
  }
  for await (const record of store.users()) yield { kind: 'user', record }
  for await (const workspace of store.workspaces()) {
    yield { kind: 'workspace', record: workspace }
    yield* exportAccess(store, workspace)
    yield* exportReleases(redis, workspace.id)
    for await (const record of walkNewest(page => store.erasures(workspace.id, page))) {
      yield { kind: 'erasure', record: atItsBeginning(record) }
    }
    for await (const work of store.allFindingWork(workspace.id)) {
      const activity = await store.findingActivity(work, { limit: FINDING_ENTRIES_KEPT })
      yield { kind: 'finding-work', record: { ...work, activity } }
    }
    const rules = await store.findingRules(workspace.id)
    if (rules) yield { kind: 'finding-rules', record: rules }
    const scrubbing = await store.scrubbing(workspace.id)
    if (scrubbing) yield { kind: 'scrubbing', record: scrubbing }
    const dropping = await store.dropping(workspace.id)
    if (dropping) yield { kind: 'dropping', record: dropping }
    const alerts = await store.alerts(workspace.id)
    if (alerts) yield { kind: 'alerts', record: alerts }
    let changes: Change[] = []
    for await (const change of walkNewest(page => store.changes(workspace.id, page))) {
      if (changes.push(change) < CHANGES_PER_LINE) continue
      yield { kind: 'changes', record: { version: 1, workspaceId: workspace.id, changes } }
      changes = []
    }
    if (changes.length > 0) yield { kind: 'changes', record: { version: 1, workspaceId: workspace.id, changes } }
  }
}

/**
 * Returns an erasure that is in progress as it began. The sessions that it has found are not exported: their identities are
 * kept until everything else of them is deleted, so it finds them again.
 */
function atItsBeginning(erasure: Erasure): Erasure {
  if (erasure.subject === undefined) return erasure
  return { ...erasure, state: 'deleting', settledAfterMs: null, position: null, counted: null }
}

async function* exportAccess(store: Directory, { id }: Workspace): AsyncGenerator<Line> {
  for await (const record of store.members(id)) yield { kind: 'member', record }
  const surfaceIds = await store.surfaceIds(id)
  for (const surfaceId of surfaceIds) {
    const record = await store.surface(id, surfaceId)
    if (record) yield { kind: 'surface', record }
  }
  for (const surfaceId of surfaceIds) {
    for (const record of await store.surfaceKeys(id, surfaceId)) yield { kind: 'surface-key', record }
  }
  for await (const record of walkNewest(page => store.workspaceKeys(id, page))) yield { kind: 'workspace-key', record }
  for await (const record of store.creations(id)) yield { kind: 'creation', record }
}

async function* exportReleases(redis: Redis, workspaceId: string): AsyncGenerator<Line> {
  const load = (slugs: string[]) => Promise.all(slugs.map(slug => loadRelease(redis, workspaceId, slug)))
  const index = releaseKeys.releases(workspaceId)
  for await (const { lines } of walkNewest(page => listNewest(redis, index, page, load))) yield* lines
  let sha256s: string[] = []
  for await (const sha256 of walkSortedMaps(redis, releaseKeys.maps(workspaceId))) {
    if (sha256s.push(sha256) < MAPS_PER_LINE) continue
    yield { kind: 'stored-maps', record: { version: 1, workspaceId, sha256s } }
    sha256s = []
  }
  if (sha256s.length > 0) yield { kind: 'stored-maps', record: { version: 1, workspaceId, sha256s } }
}

async function loadRelease(redis: Redis, workspaceId: string, slug: string) {
  const key = releaseKeys.release(workspaceId, slug)
  const [text, pointer] = await redis.mget(key, releaseKeys.manifest(workspaceId, slug))
  if (!text) return undefined
  const release = parseRecord(key, text, releaseSchema)
  const lines: Line[] = [{ kind: 'release', record: release }]
  if (pointer) {
    const manifest = parseRecord(key, pointer, manifestPointerSchema)
    lines.push({ kind: 'manifest', record: { ...manifest, workspaceId, releaseSlug: slug } })
  }
  return { id: slug, createdAt: release.createdAt, lines }
}

const MEMBERS_AT_ONCE = 100_000
const SCAN_COUNT = 5_000

/**
 * Yields the members of a set of SHA-256 digests (32 bytes each) in hex, sorted. At most about `membersAtOnce` are in
 * memory: a larger set is scanned several times, each time for one range of first bytes, over which digests are spread
 * evenly.
 */
export async function* walkSortedMaps(
  redis: Redis,
  key: string,
  membersAtOnce = MEMBERS_AT_ONCE,
): AsyncGenerator<string> {
  const ranges = Math.ceil((await redis.scard(key)) / membersAtOnce)
  for (let range = 0; range < ranges; range++) {
    const found = new Set<string>()
    let cursor = '0'
    do {
      const [next, members] = await redis.sscanBuffer(key, cursor, 'COUNT', SCAN_COUNT)
      cursor = next.toString()
      for (const member of members) {
        if (Math.floor((member.readUInt32BE() / 2 ** 32) * ranges) === range) found.add(member.toString('hex'))
      }
    } while (cursor !== '0')
    yield* [...found].sort()
  }
}
