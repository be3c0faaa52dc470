import type { ReplayChunk } from '../api/generated/client.ts'

/** What a part of the time of a window is. */
export type StretchKind =
  /** It can be played. */
  | 'played'
  /** Nothing was recorded, and nothing is missing: the page was idle, asleep or closed. */
  | 'still'
  /** Chunks never arrived. */
  | 'lost'
  /** No full snapshot has arrived yet, so that there is nothing that changes could be applied to. */
  | 'blind'
  /** The same, and no later one has arrived either. */
  | 'pictureless'
  /** Played, but after a loss and before the next full snapshot: the picture may differ from what the user saw. */
  | 'doubtful'

/** A part of the time of a window, in Unix ms. */
export interface Stretch {
  readonly kind: StretchKind
  readonly from: number
  readonly to: number
}

/** A chunk, as far as it matters for playing. */
interface Chunk {
  readonly firstMs: number
  readonly lastMs: number
  /** Its number within the window, unless its id is something else. */
  readonly number: number | undefined
  readonly hasSnapshot: boolean
  readonly isActive: boolean
  readonly bytes: number
}

/** A window (a tab) of the browser that was recorded. */
export interface RecordedWindow {
  readonly id: string
  /** Its number, in the order in which windows were opened. */
  readonly number: number
  readonly chunks: readonly Chunk[]
  readonly stretches: readonly Stretch[]
}

/** A recording: its windows, on one clock. */
export interface Recording {
  readonly windows: readonly RecordedWindow[]
  readonly startMs: number
  readonly endMs: number
  /** When the first stretch begins that can be played, or the recording if there is none. */
  readonly firstPictureMs: number
}

/** Pauses between two chunks that are no stretch of their own. */
const PAUSE_MS = 10_000

/** Returns the recording that chunks are of, or undefined without any. */
export function recordingOf(listed: readonly ReplayChunk[]): Recording | undefined {
  const byWindow = new Map<string, Chunk[]>()
  for (const chunk of listed) {
    const chunks = byWindow.get(chunk.windowId) ?? []
    byWindow.set(chunk.windowId, chunks)
    chunks.push({
      firstMs: Date.parse(chunk.firstEventAt),
      lastMs: Date.parse(chunk.lastEventAt),
      number: /^\d{1,15}$/.test(chunk.segmentId) ? Number(chunk.segmentId) : undefined,
      hasSnapshot: chunk.hasFullSnapshot,
      isActive: chunk.activityCount > 0,
      bytes: chunk.decompressedBytes,
    })
  }
  const windows = [...byWindow]
    .map(([id, chunks]) => ({ id, chunks: chunks.sort((a, b) => a.firstMs - b.firstMs) }))
    .sort((a, b) => firstOf(a.chunks) - firstOf(b.chunks))
    .map(({ id, chunks }, i) => ({ id, number: i + 1, chunks, stretches: stretchesOf(chunks) }))
  if (windows.length === 0) return undefined
  const startMs = Math.min(...windows.map(({ chunks }) => firstOf(chunks)))
  const pictures = windows.flatMap(({ stretches }) => stretches.find(({ kind }) => kind === 'played')?.from ?? [])
  return {
    windows,
    startMs,
    endMs: Math.max(...windows.map(({ stretches }) => stretches.at(-1)?.to ?? startMs)),
    firstPictureMs: pictures.length > 0 ? Math.min(...pictures) : startMs,
  }
}

const firstOf = (chunks: readonly Chunk[]) => chunks[0]?.firstMs ?? 0

/**
 * Returns what each part of the time of a window is, in its order and without gaps. There is one at least, also of a window whose
 * events have one time.
 */
function stretchesOf(chunks: readonly Chunk[]): readonly Stretch[] {
  const stretches: Stretch[] = []
  let state: StretchKind = 'blind'
  let end = firstOf(chunks)
  const append = (kind: StretchKind, from: number, to: number) => {
    const last = stretches.at(-1)
    if (last?.kind === kind) stretches[stretches.length - 1] = { ...last, to: Math.max(to, last.to) }
    else if (to > from || kind === 'lost' || last === undefined) stretches.push({ kind, from, to })
  }
  for (const [i, chunk] of chunks.entries()) {
    const before = chunks[i - 1]
    const isLost = before?.number !== undefined && chunk.number !== undefined && chunk.number > before.number + 1
    if (isLost) {
      append('lost', end, Math.max(chunk.firstMs, end))
      if (state === 'played') state = 'doubtful'
    } else if (chunk.firstMs - end > PAUSE_MS) {
      append(state === 'blind' ? 'blind' : 'still', end, chunk.firstMs)
    }
    if (chunk.hasSnapshot) {
      if (state === 'blind' && i > 0 && !isLost) append('blind', end, chunk.firstMs)
      state = 'played'
    }
    const from = stretches.at(-1)?.to ?? chunk.firstMs
    end = Math.max(end, chunk.lastMs)
    append(state, from, end)
  }
  const [first] = stretches
  if (stretches.length > 1 && first?.kind === 'blind' && first.from === first.to) stretches.shift()
  return state === 'blind'
    ? stretches.map(one => (one.kind === 'blind' ? { ...one, kind: 'pictureless' } : one))
    : stretches
}

/** Returns what a time of a window is, or undefined before and after it. */
export function stretchAt({ stretches }: RecordedWindow, at: number): Stretch | undefined {
  return stretches.find(({ from, to }) => at >= from && at <= to)
}

/**
 * Returns the window that shows what happens at a time: the one whose user is active, else the one that is shown, else any that
 * can be played, else the next one.
 */
export function windowAt({ windows }: Recording, at: number, shown: string | undefined): RecordedWindow | undefined {
  const playable = windows.filter(window => {
    const kind = stretchAt(window, at)?.kind
    return kind === 'played' || kind === 'doubtful'
  })
  // Between the last event of a chunk and the first of the next one, the window is what it was.
  const isActive = ({ chunks }: RecordedWindow) => chunks.findLast(({ firstMs }) => firstMs <= at)?.isActive === true
  const current = (window: RecordedWindow) => window.id === shown
  return (
    playable.find(window => current(window) && isActive(window)) ??
    playable.find(isActive) ??
    playable.find(current) ??
    playable[0] ??
    windows.find(window => current(window) && stretchAt(window, at) !== undefined) ??
    windows.find(window => stretchAt(window, at) !== undefined) ??
    windows.find(({ chunks }) => firstOf(chunks) > at) ??
    windows.at(-1)
  )
}

/** Returns the position of the chunk from which a time is played: the last one with a full snapshot, or -1 if there is none. */
export function seedOf({ chunks }: RecordedWindow, at: number): number {
  return chunks.findLastIndex(({ firstMs, hasSnapshot }) => hasSnapshot && firstMs <= at)
}
