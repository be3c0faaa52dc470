/** Two kinds of fault, told apart once, at the driver that met them. Bad input is neither: it is a value. */

/** The same input will always fail: retrying is useless, the guilty payload goes to the dead letters. */
export class PermanentError extends Error {
  override readonly name = 'PermanentError'
}

/** The dependency may recover: the job is retried for as long as the outage lasts. */
export class TransientError extends Error {
  override readonly name = 'TransientError'
}

/** A short text for logs from anything that was thrown. */
export function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error)
}
