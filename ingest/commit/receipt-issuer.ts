import type { Redis } from 'ioredis'
import type { ReceiptKind } from '../../schemas/http/receipts/schemas.ts'
import { ensureReceiptSecret } from '../../shared/directory/receipt-secret.ts'
import {
  COMMIT_BYTES,
  newCommit,
  RECEIPT_BYTES,
  type ReceiptSeal,
  receiptIds,
  receiptSeal,
} from '../../shared/ids/receipt.ts'
import { describeError, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { SurfaceCaller } from '../auth/authenticate-surface.ts'
import { setBounded } from '../auth/bounded-map.ts'

/** Gives receipts to requests as they are accepted. */
export interface ReceiptIssuer {
  /** False until its secret is known: nothing can be accepted before. */
  readonly isReady: boolean
  /** For the requests of one commit, the first of which arrived then. */
  open(kind: ReceiptKind, arrivedAtMs: number): OpenCommit
}

export interface OpenCommit {
  /** The 16 bytes of the receipt that was issued last. */
  readonly receipt: Buffer
  /** Issues the next receipt of the commit; answers the id that its client gets. Throws a TransientError before the issuer is ready. */
  issue(surface: SurfaceCaller): string
}

/** A seal is made once for each surface, as long as so many others have not come after it: 5 µs. */
const MAX_SEALS = 20_000

interface KnownSeal extends ReceiptSeal {
  readonly workspaceId: string
}

/** `secret`: what ids are sealed with, undefined as long as it is not known. */
export function createReceiptIssuer(secret: () => Buffer | undefined): ReceiptIssuer {
  const seals = new Map<string, KnownSeal>()
  let sealedWith: Buffer | undefined

  function sealOf({ workspaceId, surfaceId }: SurfaceCaller): ReceiptSeal {
    const known = seals.get(surfaceId)
    if (known?.workspaceId === workspaceId) return known
    if (sealedWith === undefined) throw new TransientError('receipts cannot be given yet')
    const seal = { workspaceId, ...receiptSeal(sealedWith, { workspaceId, surfaceId }) }
    setBounded(seals, MAX_SEALS, surfaceId, seal)
    return seal
  }

  return {
    get isReady() {
      return secret() !== undefined
    },
    open(kind, arrivedAtMs) {
      if (sealedWith !== secret()) seals.clear()
      sealedWith = secret()
      const commit = newCommit(kind, arrivedAtMs)
      const idOf = receiptIds(commit)
      const receipt = Buffer.alloc(RECEIPT_BYTES)
      commit.copy(receipt)
      let issued = 0
      return {
        receipt,
        issue(surface) {
          const index = issued++
          receipt.writeUInt32BE(index, COMMIT_BYTES)
          return idOf(index, sealOf(surface))
        },
      }
    },
  }
}

const RETRY_MS = 1_000

/** Reads the secret whenever the directory is connected, and puts it back where that has lost it. */
export function followReceiptSecret(redis: Redis, logger: Logger): () => Buffer | undefined {
  let secret: Buffer | undefined
  const follow = () => {
    ensureReceiptSecret(redis, secret).then(
      found => {
        secret = found
      },
      error => {
        logger.warn({ error: describeError(error) }, 'the secret of receipts could not be read')
        if (redis.status === 'ready') setTimeout(follow, RETRY_MS).unref()
      },
    )
  }
  if (redis.status === 'ready') follow()
  redis.on('ready', follow)
  return () => secret
}
