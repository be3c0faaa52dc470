import { prettyFactory } from 'pino-pretty'

/** Output of `npm start`, by process. */
export interface ConsoleLog {
  /** Shows one line of a process. Formats pino's JSON, and shows any other line unchanged. */
  line(name: string, line: string): void
  /** Shows a message of the supervisor about a process. */
  note(name: string, text: string): void
}

/** Options of `createConsoleLog`. */
interface ConsoleLogOptions {
  write: (text: string) => void
  isColored: boolean
  now?: () => Date
}

const NAME_WIDTH = 10
/** ANSI colors that are readable on light and dark backgrounds. Names get them in order of appearance. */
const COLORS = [36, 33, 35, 32, 34, 96, 93, 95]

/** Writes the output of several processes in one format: time, name, level, message, fields. */
export function createConsoleLog({ write, isColored, now = () => new Date() }: ConsoleLogOptions): ConsoleLog {
  const pretty = prettyFactory({
    colorize: isColored,
    singleLine: true,
    ignore: 'pid,hostname,process,time',
    errorLikeObjectKeys: ['err'],
  })
  const colors = new Map<string, number>()

  function emit(name: string, text: string): void {
    const time = now().toTimeString().slice(0, 8)
    const label = name.padEnd(NAME_WIDTH)
    if (!isColored) {
      write(`${time} ${label} ${text}\n`)
      return
    }
    const color = colors.get(name) ?? COLORS[colors.size % COLORS.length] ?? 0
    colors.set(name, color)
    write(`\x1b[90m${time}\x1b[39m \x1b[${color}m${label}\x1b[39m ${text}\n`)
  }

  return {
    line(name, line) {
      if (line.trim() === '') return
      const record = parseRecord(line)
      emit(name, record === undefined ? line : pretty(record).trimEnd())
    },
    note: emit,
  }
}

/** Returns the level of a record of pino, or undefined for any other line. */
export function levelOf(line: string): number | undefined {
  const level = parseRecord(line)?.level
  return typeof level === 'number' ? level : undefined
}

function parseRecord(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const record: unknown = JSON.parse(line)
    return typeof record === 'object' && record !== null && 'level' in record && 'msg' in record
      ? (record as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
