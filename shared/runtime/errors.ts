/**
 * The faults of a dependency are of two kinds, and the driver that meets a fault decides which. Bad input is not a fault:
 * it is returned as a value.
 */

/** Stable codes of faults, for log queries and alerts. Messages may change, codes do not. */
type FaultCode =
  | 'PENSTOCK_PERMANENT'
  | 'PENSTOCK_TRANSIENT'
  /** The lock of a job expired and another worker may have taken the job. */
  | 'PENSTOCK_LOCK_LOST'
  /** The process is stopping and leaves the work to the next worker. */
  | 'PENSTOCK_STOPPING'

/** Options of both kinds of fault. */
interface FaultOptions extends ErrorOptions {
  /** A code that is more specific than that of the class. */
  readonly code?: FaultCode
}

/** A fault that the same input always causes. Retrying cannot help, so the payload goes to the dead letters. */
export class PermanentError extends Error {
  override readonly name = 'PermanentError'
  readonly code: FaultCode

  constructor(message: string, { code = 'PENSTOCK_PERMANENT', ...options }: FaultOptions = {}) {
    super(message, options)
    this.code = code
  }
}

/** A fault that may pass. The job is retried for as long as the outage lasts. */
export class TransientError extends Error {
  override readonly name = 'TransientError'
  readonly code: FaultCode

  constructor(message: string, { code = 'PENSTOCK_TRANSIENT', ...options }: FaultOptions = {}) {
    super(message, options)
    this.code = code
  }
}

/** Codes of Node, zlib and zstd for memory that could not be taken. */
const MEMORY_CODES = new Set([
  'ENOMEM',
  'ERR_MEMORY_ALLOCATION_FAILED',
  'ERR_WORKER_OUT_OF_MEMORY',
  'Z_MEM_ERROR',
  'ZSTD_error_memory_allocation',
])

/**
 * Returns whether something failed because memory could not be taken. It says nothing about the input, which is tried again.
 * V8's own error has no code.
 */
export function isMemoryError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (MEMORY_CODES.has((error as NodeJS.ErrnoException).code ?? '')) return true
  return error instanceof RangeError && /allocation failed/i.test(error.message)
}

/** Returns the name and message of anything that was thrown, as one short text for logs. */
export function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}

/** Returns the message of anything that was thrown, for a text that says itself what failed. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Returns the log fields of anything that was thrown: its text, and its code if it has one (Node's errors do, too). */
export function errorFields(error: unknown): { readonly error: string; readonly code?: string } {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return { error: describeError(error), ...(typeof code === 'string' && { code }) }
}
