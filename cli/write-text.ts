import { once } from 'node:events'
import type { Writable } from 'node:stream'

/** Writes to a stream, and waits while it is full. Throws when it breaks (EPIPE: nobody reads it any more). */
export async function writeText(stream: Writable, text: string): Promise<void> {
  if (!stream.write(text)) await once(stream, 'drain')
}
