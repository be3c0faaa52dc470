import { crc32 } from 'node:zlib'
import type { Redis } from 'ioredis'
import { DAY_S, HOUR_MS } from '../../schemas/units.ts'
import { pageRequestOf } from '../../shared/queue/page-request.ts'
import type { PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { queueScript } from '../../shared/queue/queue-script.ts'

/** Finds requests that a page has sent again. */
export interface PageClaims {
  /**
   * Returns the indexes of the requests whose number an earlier request of their page has. The same request always gets the same
   * answer, so that a job that is processed again has the same rows. Rejects if Redis does not respond.
   */
  repeated(frames: readonly PayloadFrame[]): Promise<ReadonlySet<number>>
}

/** A page sends again for a day. */
const LIFETIME_S = DAY_S
/** Numbers of a record of Redis, which has 20 bytes for each and 120 of its own while it has no more than 128. */
const BLOCK = 128
/** Records that a workspace may begin in an hour: 100 MB at most, full ones. Requests of further pages count as new. */
const RECORDS_PER_HOUR = 100_000

const CLAIM = queueScript('claim-page-requests')
const NONE: ReadonlySet<number> = new Set()

/** Numbers of a page, with the indexes of their requests. */
interface Block {
  readonly keys: readonly [claims: string, begun: string]
  readonly args: (string | number)[]
  readonly indexes: number[]
}

/**
 * Keeps the numbers of pages in the Redis of the queues (docs/decisions/063-pages-number-requests.md). Those of a workspace
 * have one tag.
 */
export function createPageClaims(redis: Redis): PageClaims {
  return {
    async repeated(frames) {
      const blocks = blocksOf(frames)
      if (blocks.length === 0) return NONE
      const repeated = new Set<number>()
      await Promise.all(
        blocks.map(async ({ keys, args, indexes }) => {
          const owns = (await CLAIM.run(redis, keys, [LIFETIME_S, RECORDS_PER_HOUR, ...args])) as readonly number[]
          for (const [i, index] of indexes.entries()) if (owns[i] === 0) repeated.add(index)
        }),
      )
      return repeated
    },
  }
}

function blocksOf(frames: readonly PayloadFrame[]): readonly Block[] {
  const blocks = new Map<string, Block>()
  for (const [index, frame] of frames.entries()) {
    const request = pageRequestOf(frame)
    // A request without a receipt is not from a client.
    if (request === undefined || frame.receipt === undefined) continue
    const { page, sequence } = request
    const { workspaceId, surfaceId, receivedAtMs } = frame
    const claims = `penstock:{page-requests:${workspaceId}}:${surfaceId}:${page}:${Math.floor(sequence / BLOCK)}`
    const begun = `penstock:{page-requests:${workspaceId}}:begun:${Math.floor(receivedAtMs / HOUR_MS)}`
    const block = blocks.get(claims) ?? { keys: [claims, begun], args: [], indexes: [] }
    blocks.set(claims, block)
    block.args.push(sequence, crc32(Buffer.from(frame.receipt, 'latin1')).toString(36))
    block.indexes.push(index)
  }
  return [...blocks.values()]
}
