import { expect, it } from 'vitest'
import { createConsoleLog } from './console-log.ts'
import { StartLog } from './start-log.ts'

const record = (level: number, msg: string) => JSON.stringify({ level, msg })

function startLog({ columns, isVerbose = false }: { columns?: number; isVerbose?: boolean } = {}) {
  let written = ''
  const write = (text: string) => {
    written += text
  }
  let nowMs = 0
  const now = () => nowMs
  const log = new StartLog({
    log: createConsoleLog({ write, isColored: false, now: () => new Date(2026, 0, 2, 3, 4, 5) }),
    write,
    columns: columns === undefined ? undefined : () => columns,
    isVerbose,
    now,
  })
  return { log, written: () => written, pass: (ms: number) => (nowMs += ms) }
}

/** Returns the lines that a terminal shows, where a carriage return and an erased line begin again. */
const shown = (written: string) => written.split('\n').map(line => line.split('\r\x1b[2K').at(-1))

it('writes a line for each step and what it has achieved, where lines cannot change', () => {
  const { log, written } = startLog()
  log.step('Keys and ports')
  log.step('Stores')
  log.progress('redis', 'ready in 0.2 s (pid 7)')
  log.ready()
  expect(written()).toBe('[2/6] Keys and ports\n[3/6] Stores\n03:04:05 redis      ready in 0.2 s (pid 7)\n')
})

it('shows the steps on one line of a terminal, which is gone when everything is ready', () => {
  const { log, written, pass } = startLog({ columns: 80 })
  log.step('Keys and ports')
  log.step('Stores')
  pass(2_100)
  log.progress('redis', 'ready in 0.2 s')
  expect(shown(written())).toEqual(['[3/6] Stores · 2 s · redis ready in 0.2 s'])
  log.ready()
  expect(shown(written())).toEqual([''])
})

it('cuts the line of a narrow terminal, because a line that wraps cannot be erased', () => {
  const { log, written } = startLog({ columns: 10 })
  log.step('Keys and ports')
  log.stop()
  expect(written()).toBe('[2/6] Key\r\x1b[2K')
})

it.each([undefined, 80])(
  'shows what matters of the processes at once, before everything is ready (%s columns)',
  columns => {
    const { log, written } = startLog(columns === undefined ? {} : { columns })
    log.step('Edge')
    for (const level of [10, 20, 30]) log.line('edge', record(level, 'routine'))
    log.line('edge', record(40, 'slow'))
    log.line('edge', record(60, 'broken'))
    log.line('edge', 'Error: at edge.ts')
    log.note('edge', 'ended (exit code 1), starting it again')
    const lines = shown(written()).filter(line => line?.includes('edge  '))
    expect(lines.map(line => line?.slice(20))).toEqual([
      'WARN: slow',
      'FATAL: broken',
      'Error: at edge.ts',
      'ended (exit code 1), starting it again',
    ])
    log.stop()
    log.line('edge', record(30, 'routine'))
    expect(written()).not.toContain('routine')
  },
)

it('shows every line once everything is ready, and before with a verbose level', () => {
  for (const [isVerbose, end] of [
    [false, true],
    [true, false],
  ] as const) {
    const { log, written } = startLog({ isVerbose })
    log.step('Edge')
    if (end) log.ready()
    log.line('edge', record(30, 'listening'))
    expect(written()).toContain('INFO: listening')
  }
})
