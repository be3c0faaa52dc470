import { signal } from '@preact/signals'
import { ENTRY_TEXT_MAX, type RecordedEntry, type StageOrder, type StageReport } from '../stage/messages.ts'
import { BASE } from '../state/router.ts'

/** Address of the document in which recordings are played. */
export const PLAYER_DOCUMENT = `${BASE}player`
const START_DEADLINE_MS = 15_000
const ENTRIES_MAX = 1_000
const PIXELS_MAX = 20_000

/** The connection to the stage. */
export interface StageChannel {
  send(order: StageOrder): void
  close(): void
}

/** Size of the recorded page, in its pixels. */
export const DEFAULT_SIZE = { width: 1_024, height: 768 }
/** Size of the recorded page. */
export type PictureSize = typeof DEFAULT_SIZE

/**
 * Connects to the document of the player in a frame, once that asks for it. The frame gets one port and nothing else. Its
 * reports are checked, because it handles what unknown clients have sent.
 */
export function openStage(
  frame: HTMLIFrameElement,
  onReport: (report: StageReport) => void,
  onFailed: () => void,
): StageChannel {
  const { port1, port2 } = new MessageChannel()
  const isReady = signal(false)
  const waiting: StageOrder[] = []
  const deadline = setTimeout(onFailed, START_DEADLINE_MS)
  const connect = ({ source, origin, data }: MessageEvent) => {
    if (source !== frame.contentWindow || origin !== location.origin || data !== 'ready') return
    removeEventListener('message', connect)
    frame.contentWindow?.postMessage('connect', location.origin, [port2])
  }
  addEventListener('message', connect)
  port1.onmessage = ({ data }: MessageEvent<unknown>) => {
    const report = checkedReport(data)
    if (report === undefined) return
    if (report.kind === 'ready') {
      clearTimeout(deadline)
      isReady.value = true
      for (const order of waiting.splice(0)) port1.postMessage(order)
    }
    onReport(report)
  }
  frame.src = PLAYER_DOCUMENT
  return {
    send: order => (isReady.value ? port1.postMessage(order) : waiting.push(order)),
    close() {
      clearTimeout(deadline)
      removeEventListener('message', connect)
      port1.close()
    },
  }
}

/** Returns a report if it has the form of one. Texts and lists are cut. */
function checkedReport(value: unknown): StageReport | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const report = value as Record<string, unknown>
  const number = (name: string) => (Number.isFinite(report[name]) ? (report[name] as number) : 0)
  const list = (name: string) => (Array.isArray(report[name]) ? (report[name] as unknown[]).slice(0, ENTRIES_MAX) : [])
  const pixels = (name: string) => Math.min(Math.max(Math.round(number(name)), 1), PIXELS_MAX)
  switch (report.kind) {
    case 'ready':
      return { kind: 'ready' }
    case 'size':
      return { kind: 'size', width: pixels('width'), height: pixels('height') }
    case 'refused':
      return { kind: 'refused', count: number('count') }
    case 'activity':
      return {
        kind: 'activity',
        run: number('run'),
        times: list('times').filter(time => Number.isFinite(time)) as number[],
      }
    case 'recorded':
      return { kind: 'recorded', run: number('run'), entries: list('entries').flatMap(checkedEntry) }
    case 'progress':
      return {
        kind: 'progress',
        run: number('run'),
        reached: number('reached'),
        hasPicture: report.hasPicture === true,
        isIdle: report.isIdle === true,
        waitingPortions: number('waitingPortions'),
        waitingBytes: number('waitingBytes'),
      }
    default:
      return undefined
  }
}

function checkedEntry(value: unknown): RecordedEntry[] {
  if (typeof value !== 'object' || value === null) return []
  const { at, kind, isError, text } = value as Record<string, unknown>
  if (!Number.isFinite(at) || typeof text !== 'string') return []
  return [
    {
      at: at as number,
      kind: kind === 'network' ? 'network' : 'console',
      isError: isError === true,
      text: text.slice(0, ENTRY_TEXT_MAX),
    },
  ]
}
