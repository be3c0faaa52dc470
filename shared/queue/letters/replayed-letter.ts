import { type ReplayedLetter, replayedLetterSchema } from '../../../schemas/queues/dead-letters.ts'

/** No attributes of a request begin like this, because the service itself writes their names. */
const PREFIX = '{"replayed":'

/** Returns the attributes of a request with the dead letter that it is replayed from. */
export function withReplay(attributes: string, letter: ReplayedLetter): string {
  const rest = attributes.length > '{}'.length ? `,${attributes.slice(1)}` : '}'
  return `${PREFIX}${JSON.stringify(letter)}${rest}`
}

/** Reports whether a frame with these attributes is replayed from a dead letter. */
export function isReplayed(attributes: string): boolean {
  return attributes.startsWith(PREFIX)
}

/** Returns the dead letter that a request is replayed from, or undefined if it comes from a client. */
export function replayedFrom({ attributes }: { readonly attributes: string }): ReplayedLetter | undefined {
  return isReplayed(attributes) ? replayedLetterSchema.parse(JSON.parse(attributes).replayed) : undefined
}
