import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLogger } from '../logger.ts'
import { LogRepeats } from './log-repeats.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

interface Line {
  readonly msg: string
  readonly repeated?: number
  readonly error?: string
}

/** Returns a logger, and the lines that it has written. */
function recordedLogger() {
  const lines: Line[] = []
  return { logger: createLogger('test', 'info', { write: text => void lines.push(JSON.parse(text)) }), lines }
}

const countOf = (lines: readonly Line[]) => lines.reduce((sum, { repeated = 0 }) => sum + 1 + repeated, 0)

it('writes the first of a flood at once, then one line each ten seconds that counts the others', () => {
  const { logger, lines } = recordedLogger()
  for (let second = 0; second < 25; second++) {
    for (let i = 0; i < 35; i++) logger.warn({ queue: `q${i}`, error: `ReplyError: WRONGPASS (${i})` }, 'worker error')
    vi.advanceTimersByTime(1_000)
  }
  expect(lines.map(({ repeated }) => repeated)).toEqual([undefined, 348, 349])
  vi.advanceTimersByTime(10_000)
  expect(lines).toHaveLength(4)
  expect(countOf(lines)).toBe(25 * 35)
})

it('writes everything that is an event of its own', () => {
  const { logger, lines } = recordedLogger()
  logger.warn({ error: 'Error: a' }, 'failed')
  logger.warn({ error: 'Error: b' }, 'failed')
  logger.error({ error: 'Error: a' }, 'failed')
  logger.warn({ error: 'Error: a', code: 'ECONNREFUSED' }, 'failed')
  logger.warn({ reason: 'x' }, 'not kept')
  logger.warn({ reason: 'y' }, 'not kept')
  logger.error(Object.assign(new Error('a'), { code: 'EPIPE' }), 'failed')
  logger.info('again')
  logger.info('again')
  expect(lines).toHaveLength(9)
})

it('takes lines of one code for equal, however their texts and values differ', () => {
  const { logger, lines } = recordedLogger()
  for (const port of [1, 2]) logger.error({ error: `Error: refused by ${port}`, code: 'ECONNREFUSED' }, 'failed')
  for (const id of ['a', 'b']) logger.child({ id }).warn({ err: new Error('late 7') }, 'late')
  logger.warn('text')
  logger.warn('text')
  expect(lines.map(({ msg }) => msg)).toEqual(['failed', 'late', 'text'])
})

it('states the last event of a flood, as it was logged', () => {
  const { logger, lines } = recordedLogger()
  for (const error of ['Error: 1', 'Error: 2', 'Error: 3']) logger.error({ error }, 'failed')
  for (const text of ['1', '2', '3']) logger.warn(Object.assign(new Error(text), { code: 'X' }), 'broken')
  vi.advanceTimersByTime(10_000)
  expect(lines.slice(2)).toMatchObject([
    { error: 'Error: 3', repeated: 1, msg: 'failed' },
    { err: { message: '3' }, repeated: 1, msg: 'broken' },
  ])
})

it('writes at once again after ten quiet seconds, and follows no more keys than it has room for', () => {
  const repeats = new LogRepeats()
  const written: string[] = []
  const add = (key: string) => repeats.add(key, repeated => void written.push(`${key} ${repeated}`))
  add('a')
  vi.advanceTimersByTime(10_000)
  add('a')
  expect(written).toEqual(['a 0', 'a 0'])
  add('a')
  add('a')
  for (let i = 0; i < 500; i++) add(`k${i}`)
  // The oldest key made room, and what was counted of it is written.
  expect(written.filter(line => line.startsWith('a '))).toEqual(['a 0', 'a 0', 'a 1'])
  expect(vi.getTimerCount()).toBe(500)
  repeats.flush()
  expect(vi.getTimerCount()).toBe(0)
})

it('loses no event when it is flushed in the middle', () => {
  const repeats = new LogRepeats()
  let events = 0
  for (let i = 0; i < 1_000; i++) {
    repeats.add(`k${i % 7}`, repeated => {
      events += 1 + repeated
    })
    if (i % 300 === 0) vi.advanceTimersByTime(4_000)
    if (i % 400 === 0) repeats.flush()
  }
  repeats.flush()
  expect(events).toBe(1_000)
})
