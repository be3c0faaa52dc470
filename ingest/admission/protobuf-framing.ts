/** Most top-level fields of an export, which are its resources. 20 MiB of empty fields would take 100 ms to read. */
const MAX_FIELDS = 100_000
const NO_MESSAGE = 'the body is not a protobuf message: a field is cut short or its tag is invalid'

/**
 * Returns the fault of bytes that are not a sequence of whole protobuf fields at the top level. This is what the edge can
 * check of an OTLP export at the cost of a few reads, because an export has one top-level field per resource. The contents of
 * the fields are not checked.
 */
export function protobufFault(bytes: Buffer): string | undefined {
  let fields = 0
  let at = 0
  while (at < bytes.length) {
    if (++fields > MAX_FIELDS) return `the body has too many resources: send at most ${MAX_FIELDS} in one request`
    const tag = readVarint(bytes, at)
    if (tag.next < 0 || tag.value < 8 || tag.value > 0xffff_ffff) return NO_MESSAGE
    at = tag.next
    switch (tag.value & 7) {
      case 0:
        at = readVarint(bytes, at).next
        if (at < 0) return NO_MESSAGE
        break
      case 1:
        at += 8
        break
      case 2: {
        const length = readVarint(bytes, at)
        if (length.next < 0) return NO_MESSAGE
        at = length.next + length.value
        break
      }
      case 5:
        at += 4
        break
      default:
        return NO_MESSAGE
    }
  }
  return at === bytes.length ? undefined : NO_MESSAGE
}

/**
 * Reads a varint. Its value is exact up to 2^53, which is more than the length of any body. `next` is -1 if the bytes are
 * not a varint.
 */
function readVarint(bytes: Buffer, start: number): { value: number; next: number } {
  let value = 0
  let factor = 1
  for (let at = start; at < start + 10; at++) {
    const byte = bytes[at]
    if (byte === undefined) break
    value += (byte & 0x7f) * factor
    if (byte < 0x80) return { value, next: at + 1 }
    factor *= 128
  }
  return { value: 0, next: -1 }
}
