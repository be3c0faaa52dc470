/** An event of rrweb, as far as it was checked. */
export interface RecordedEvent {
  readonly type: number
  readonly timestamp: number
  readonly data: Record<string, unknown>
}

/** Types of events of rrweb. */
export const EVENT = { fullSnapshot: 2, incremental: 3, meta: 4, plugin: 6 } as const
/** Sources of incremental events of rrweb. */
export const SOURCE = {
  mutation: 0,
  mouseMove: 1,
  mouseInteraction: 2,
  scroll: 3,
  resize: 4,
  input: 5,
  touchMove: 6,
  drag: 12,
} as const

const ACTIVE: ReadonlySet<unknown> = new Set([
  SOURCE.mouseMove,
  SOURCE.mouseInteraction,
  SOURCE.scroll,
  SOURCE.input,
  SOURCE.touchMove,
  SOURCE.drag,
])
const MOVES: ReadonlySet<unknown> = new Set([SOURCE.mouseMove, SOURCE.touchMove, SOURCE.drag])

/** Reports whether a person caused the event. */
export function isActivity({ type, data }: RecordedEvent): boolean {
  return type === EVENT.incremental && ACTIVE.has(data.source)
}

/** Reads a line of a recording. Returns undefined if it is not an event. */
export function parseEvent(line: string): RecordedEvent | undefined {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    return undefined
  }
  if (!isRecord(value) || !isRecord(value.data)) return undefined
  const { type, timestamp, data } = value
  if (typeof type !== 'number' || typeof timestamp !== 'number' || !Number.isFinite(timestamp)) return undefined
  return { type, timestamp, data }
}

/** Most positions of an event that are played. The recorder writes one in 50 ms, for half a second. */
const POSITIONS_MAX = 200

/** Cuts an event with movements of a pointer into one for each position, at the time of the position. */
export function cutMoves(event: RecordedEvent): readonly RecordedEvent[] {
  const { data, type, timestamp } = event
  if (type !== EVENT.incremental || !MOVES.has(data.source)) return [event]
  if (!Array.isArray(data.positions)) return []
  return data.positions
    .filter(isRecord)
    .slice(0, POSITIONS_MAX)
    .map(position => ({
      type,
      timestamp: timestamp + Math.min(numberOr(position.timeOffset, 0), 0),
      data: { ...data, positions: [{ ...position, timeOffset: 0 }] },
    }))
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function numberOr<T>(value: unknown, other: T): number | T {
  return typeof value === 'number' && Number.isFinite(value) ? value : other
}
