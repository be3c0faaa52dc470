import { dataText } from './data-text.ts'

/** Characters of an answer as JSON: some 8,000 tokens. */
export const ANSWER_CHARACTERS = 24_000

interface Level {
  /** Most characters of a text within an entry. */
  readonly text: number
  /** Most items of a list or an object within an entry. */
  readonly items: number
}

/** How much of the entries is shown. The first level at which an answer fits is chosen. */
const LEVELS: readonly [Level, ...Level[]] = [
  { text: 2_000, items: 64 },
  { text: 600, items: 24 },
  { text: 200, items: 8 },
]
/** An object or a list that is nested deeper is shown as JSON. */
const DEPTH_MAX = 5

/** Members of an answer. Its texts are made by the service; everything within its lists and objects may be telemetry. */
export type Answer = Readonly<Record<string, unknown>>

/**
 * Returns an answer that has at most `limit` characters as JSON, and what was cut. Texts of all entries are cut to the same
 * length, then lists within entries, and at last the ends of the lists of entries.
 */
export function fitAnswer(answer: Answer, limit: number = ANSWER_CHARACTERS): { answer: Answer; cut: string[] } {
  const cuts = new Set<string>()
  let fitted = answer
  for (const level of LEVELS) {
    cuts.clear()
    fitted = shortened(answer, level, cuts)
    if (charactersOf(fitted) <= limit) return { answer: fitted, cut: [...cuts] }
  }
  const lists = Object.keys(answer).filter(name => Array.isArray(answer[name]))
  const totals = new Map(lists.map(name => [name, (answer[name] as unknown[]).length]))
  while (charactersOf(fitted) > limit) {
    const [longest] = lists.sort((a, b) => charactersOf(fitted[b]) - charactersOf(fitted[a]))
    const entries = longest === undefined ? [] : (fitted[longest] as unknown[])
    if (longest === undefined || entries.length === 0) break
    fitted = { ...fitted, [longest]: entries.slice(0, Math.floor(entries.length * 0.8)) }
  }
  for (const [name, total] of totals) {
    const { length } = fitted[name] as unknown[]
    if (length < total) {
      cuts.add(
        `${name}: the first ${length} of ${total} are shown; ask for fewer at a time, or for a narrower selection`,
      )
    }
  }
  return { answer: fitted, cut: [...cuts] }
}

function charactersOf(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0
}

function shortened(answer: Answer, level: Level, cuts: Set<string>): Answer {
  const members = Object.entries(answer).map(([name, value]) => {
    if (Array.isArray(value)) return [name, value.map(entry => shortenedValue(entry, level, 1, cuts))]
    return [name, typeof value === 'string' ? value : shortenedValue(value, level, 1, cuts)]
  })
  return Object.fromEntries(members) as Answer
}

function shortenedValue(value: unknown, level: Level, depth: number, cuts: Set<string>): unknown {
  if (typeof value === 'string') {
    if (value.length > level.text) cuts.add(`texts are cut after ${level.text} characters`)
    return dataText(value, level.text)
  }
  if (typeof value !== 'object' || value === null) return value
  if (depth > DEPTH_MAX) return shortenedValue(JSON.stringify(value), level, depth, cuts)
  const inner = (part: unknown) => shortenedValue(part, level, depth + 1, cuts)
  if (Array.isArray(value)) {
    noteItems(value.length, level, cuts)
    return value.slice(0, level.items).map(inner)
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined)
  // The members of an entry are those that the tool has promised. Telemetry has no names for them.
  const items = depth === 1 ? members.length : level.items
  noteItems(members.length, { ...level, items }, cuts)
  return Object.fromEntries(members.slice(0, items).map(([key, member]) => [dataText(key, level.text), inner(member)]))
}

function noteItems(count: number, { items }: Level, cuts: Set<string>): void {
  if (count > items) cuts.add(`lists and objects within an entry are cut after ${items} items`)
}
