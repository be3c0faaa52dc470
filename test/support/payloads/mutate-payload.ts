import type { Random } from './scramble-message.ts'

/** Returns a copy with a few bits flipped, bytes replaced by bytes that make lengths long, or the end cut off. */
export function mutatePayload(original: Uint8Array, random: Random): Buffer {
  const body = Buffer.from(original)
  const places = 1 + Math.floor(random() * 3)
  for (let i = 0; i < places; i++) {
    const at = Math.floor(random() * body.length)
    const kind = random()
    if (kind < 0.5) body[at] = (body[at] as number) ^ (1 << Math.floor(random() * 8))
    else if (kind < 0.7) body[at] = [0x00, 0x7f, 0x80, 0xff][Math.floor(random() * 4)] as number
    else if (kind < 0.8) body.fill(0xff, at, Math.min(body.length, at + Math.floor(random() * 12)))
    else if (kind < 0.9) body.copy(body, at, Math.floor(random() * body.length))
    else return body.subarray(0, at)
  }
  return body
}

/** Returns the body between other bytes, like a request in its payload, so that a read past its end has an effect. */
export function amid(body: Buffer, surroundings: number): Buffer {
  const held = Buffer.alloc(body.length + 64, surroundings)
  body.copy(held, 32)
  return held.subarray(32, 32 + body.length)
}
