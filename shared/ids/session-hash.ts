import { hash } from 'node:crypto'

/** Returns the 16 bytes by which the log names a session, whose id it must not contain. */
export function hashOfSession(sessionId: string): Buffer {
  return hash('sha256', sessionId, 'buffer').subarray(0, 16)
}
