import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createLogger } from '../logger.ts'
import type { Health } from './health.ts'
import { logReadiness } from './readiness-log.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('logs each reason once, and when the process is ready again', async () => {
  const lines: string[] = []
  const write = (text: string) => {
    const { level, msg } = JSON.parse(text)
    lines.push(`${level} ${msg}`)
  }
  let health: Health = 'redis is not connected'
  const stop = logReadiness(async () => health, createLogger('test', 'info', { write }))
  for (const next of [
    'it is starting',
    'redis is not connected',
    'redis is not connected',
    'its clock is 61 s ahead',
    'its clock is 62 s ahead',
    true,
    true,
    false,
    'its clock is 63 s ahead',
    { note: 'clickhouse: the table logs is missing' },
  ]) {
    health = next
    await vi.advanceTimersByTimeAsync(1_000)
  }
  stop()
  health = 'another'
  await vi.advanceTimersByTimeAsync(5_000)
  expect(lines).toEqual([
    '40 not ready: redis is not connected',
    '40 not ready: its clock is 61 s ahead',
    '30 ready',
    '40 not ready: not ok',
    '40 not ready: its clock is 63 s ahead',
    '40 ready, but clickhouse: the table logs is missing',
  ])
})
