import { expect, it } from 'vitest'
import { createConsoleLog } from './console-log.ts'

function lines(isColored: boolean, ...written: string[]): string[] {
  const shown: string[] = []
  const log = createConsoleLog({ write: text => shown.push(text), isColored, now: () => new Date(2026, 0, 2, 3, 4, 5) })
  for (const line of written) log.line('edge', line)
  return shown
}

it('shows a pino record on one line', () => {
  const record = '{"level":30,"time":"2026-01-02T03:04:05Z","process":"ingest","port":4318,"msg":"listening"}'
  expect(lines(false, record)).toEqual(['03:04:05 edge       INFO: listening {"port":4318}\n'])
})

it('shows other lines unchanged, and skips empty ones', () => {
  expect(lines(false, 'plain', '', '{"a":1}', '{broken')).toEqual([
    '03:04:05 edge       plain\n',
    '03:04:05 edge       {"a":1}\n',
    '03:04:05 edge       {broken\n',
  ])
})

it('colors the output only when isColored is set', () => {
  expect(lines(true, 'x').join('')).toContain('\x1b[')
  expect(lines(false, '{"level":50,"msg":"x"}').join('')).not.toContain('\x1b[')
})
