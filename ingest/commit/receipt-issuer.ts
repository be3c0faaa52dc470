import type { Redis } from 'ioredis'
import type { AdmittedQueue } from '../../schemas/queues/names.ts'
import { ensureReceiptSecret } from '../../shared/directory/receipt-secret.ts'
import { directoryKeys } from '../../shared/directory/record.ts'
import {
  COMMIT_BYTES,
  newCommit,
  RECEIPT_BYTES,
  ReceiptIds,
  type ReceiptSeal,
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
  open(kind: AdmittedQueue, arrivedAtMs: number): OpenCommit
}

/** The receipts of one commit. */
export interface OpenCommit {
  /** The 16 bytes of the receipt that was issued last. */
  readonly receipt: Buffer
  /** Issues the next receipt of the commit, to this surface. Throws a TransientError before the issuer is ready. */
  issue(surface: ReceiptSurface): ReceiptSeal
  /**
   * Returns the id of a receipt, from the number of those that were issued before it and the result of `issue`. The bytes are
   * valid until the next id of the surface is read, so a caller that keeps them copies them.
   */
  idOf(index: number, seal: ReceiptSeal): Buffer
}

/** The surface that a receipt belongs to. */
interface ReceiptSurface {
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
    const seal: CachedSeal = { workspaceId, ...receiptSeal(sealedWith, { workspaceId, surfaceId }) }
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
      const ids = new ReceiptIds(commit)
      const receipt = Buffer.alloc(RECEIPT_BYTES)
      commit.copy(receipt)
      let issued = 0
      return {
        receipt,
        issue(surface) {
          const seal = sealOf(surface)
          receipt.writeUInt32BE(issued++, COMMIT_BYTES)
          return seal
        },
        idOf: (index, seal) => ids.write(index, seal),
      }
    },
  }
}

const RETRY_MS = 1_000

/** The collaborators of `followReceiptSecret`. */
interface ReceiptSecretDeps {
  /** The Redis of the directory, which has the secret. */
  readonly directory: Redis
  /** Calls a function after each check of the installation, which makes its record in a new directory. */
  readonly onChecked: (listener: () => void) => void
  readonly logger: Logger
}

/**
 * Reads the secret whenever the installation is checked, each minute, so that a rotation is noticed. Stores it there again if the
 * directory has lost it alone, and creates it in the directory of a new installation. A directory that has lost everything gets
 * none: its keys would be unknown instead of unavailable. Returns a function that returns the secret, or undefined until it was
 * read.
 */
export function followReceiptSecret({ directory, onChecked, logger }: ReceiptSecretDeps): () => Buffer | undefined {
  let secret: Buffer | undefined
  let reported: string | undefined
  const isClaimed = async () => (await directory.exists(directoryKeys.installation)) === 1
  const ensure = async () => {
    secret = await ensureReceiptSecret(directory, secret, isClaimed)
    reported = undefined
  }
  const follow = () => {
    ensure().catch(error => {
      const { message } = error as Error
      if (message !== reported) logger.warn(errorFields(error), 'the secret of receipts could not be read')
      reported = message
      if (directory.status === 'ready') setTimeout(follow, RETRY_MS).unref()
    })
  }
  onChecked(follow)
  return () => secret
}
