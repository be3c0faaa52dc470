import type { Redis } from 'ioredis'
import type { ReceiptKind } from '../../schemas/queues/names.ts'
import { ensureReceiptSecret } from '../../shared/directory/receipt-secret.ts'
import {
  COMMIT_BYTES,
  newCommit,
  RECEIPT_BYTES,
  type ReceiptSeal,
  receiptIds,
  receiptSeal,
} from '../../shared/ids/receipt.ts'
import { setBounded } from '../../shared/memory/bounded-map.ts'
import { errorFields, TransientError } from '../../shared/runtime/errors.ts'
import type { Logger } from '../../shared/runtime/logger.ts'

/** Issues the receipts of accepted requests. */
export interface ReceiptIssuer {
  /** False until the secret is known. Nothing can be accepted before. */
  readonly isReady: boolean
  /** Opens the receipts of one commit. `arrivedAtMs` is the arrival of its first request. */
  open(kind: ReceiptKind, arrivedAtMs: number): OpenCommit
}

/** The receipts of one commit. */
export interface OpenCommit {
  /** The 16 bytes of the receipt that was issued last. */
  readonly receipt: Buffer
  /** Issues the next receipt of the commit and returns its id. Throws a TransientError before the issuer is ready. */
  issue(surface: ReceiptSurface): string
}

/** The surface that a receipt belongs to. */
export interface ReceiptSurface {
  readonly workspaceId: string
  readonly surfaceId: string
}

/** Cached seals, one per surface. Computing a seal takes 5 µs. */
const MAX_SEALS = 20_000

interface CachedSeal extends ReceiptSeal {
  readonly workspaceId: string
}

/** Creates a receipt issuer. `secret` returns the key that seals ids, or undefined while it is unknown. */
export function createReceiptIssuer(secret: () => Buffer | undefined): ReceiptIssuer {
  const seals = new Map<string, CachedSeal>()
  let sealedWith: Buffer | undefined

  function sealOf({ workspaceId, surfaceId }: ReceiptSurface): ReceiptSeal {
    const cached = seals.get(surfaceId)
    if (cached?.workspaceId === workspaceId) return cached
    if (sealedWith === undefined) throw new TransientError('the secret of receipts is unknown')
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

/**
 * Reads the secret whenever the directory connects, and stores it there again if the directory has lost it. `adopted`
 * resolves when the secret of an earlier version can be read. Returns a function that returns the secret, or undefined until
 * it was read.
 */
export function followReceiptSecret(
  redis: Redis,
  logger: Logger,
  adopted: Promise<void> = Promise.resolve(),
): () => Buffer | undefined {
  let secret: Buffer | undefined
  const ensure = async () => {
    await adopted
    return ensureReceiptSecret(redis, secret)
  }
  const follow = () => {
    ensure().then(
      found => {
        secret = found
      },
      error => {
        logger.warn(errorFields(error), 'the secret of receipts could not be read')
        if (redis.status === 'ready') setTimeout(follow, RETRY_MS).unref()
      },
    )
  }
  if (redis.status === 'ready') follow()
  redis.on('ready', follow)
  return () => secret
}
