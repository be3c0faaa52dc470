/**
 * The column `details` of spans: whatever few spans have, and only a read of whole spans shows. It is empty for a span without any
 * of it. Otherwise it is a sequence of entries, each of which begins with one of these bytes. A string is its length as a varint,
 * and its bytes. Numbers are little-endian.
 *
 *   event           time UInt64, dropped attributes UInt32, name, attributes
 *   link            flags UInt32, dropped attributes UInt32, trace id, span id, trace state, attributes
 *   traceState      string
 *   dropped…        UInt32
 *
 * Attributes: their number as a varint, a byte of type for each, all keys, all values.
 */
export const SpanDetail = {
  event: 1,
  link: 2,
  traceState: 3,
  droppedAttributes: 4,
  droppedEvents: 5,
  droppedLinks: 6,
} as const
