import { ENTRY_TEXT_MAX, type RecordedEntry, type StageReport } from '../stage/messages.ts'

const ENTRIES_MAX = 1_000
const PIXELS_MAX = 20_000
/** The end of the year 9999. Later times cannot be formatted as others are, and from 8.64e15 on not at all. */
const LAST_MS = 253_402_300_799_999

/** Returns a report of the stage if it has the form of one. Cuts texts and lists, and leaves out entries with impossible times. */
export function checkedReport(value: unknown): StageReport | undefined {
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
      return { kind: 'activity', run: number('run'), times: list('times').filter(isTime) }
    case 'recorded':
      return { kind: 'recorded', run: number('run'), entries: list('entries').flatMap(checkedEntry) }
    case 'progress':
      return {
        kind: 'progress',
        run: number('run'),
        reached: number('reached'),
        hasPicture: report.hasPicture === true,
        firstPictureAt: isTime(report.firstPictureAt) ? report.firstPictureAt : undefined,
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
  if (!isTime(at) || typeof text !== 'string') return []
  return [
    {
      at,
      kind: kind === 'network' ? 'network' : 'console',
      isError: isError === true,
      text: text.slice(0, ENTRY_TEXT_MAX),
    },
  ]
}

function isTime(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= LAST_MS
}
