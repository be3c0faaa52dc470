import type { AlertRule } from '../../schemas/records/alerts.ts'
import { dueTime } from '../calling/due-time.ts'
import { HELD_MAX } from '../calling/held-events.ts'
import { EVENTS_MAX } from '../calling/targets.ts'

/**
 * Counts the messages that a channel with many events in one would have got of events at these times, which ascend. Those that
 * still wait at the end are counted as sent. Events of the same time are found together.
 */
export function countMessages(rule: Pick<AlertRule, 'everyMinutes' | 'quietHours'>, atMs: readonly number[]): number {
  const times = Map.groupBy(atMs, time => time)
  const rests = rule.everyMinutes !== undefined
  let messages = 0
  let lastMs: number | undefined
  let waiting: { readonly count: number; readonly dueMs: number } | undefined
  const send = (count: number, nowMs: number) => {
    messages += Math.ceil(count / EVENTS_MAX)
    if (rests) lastMs = nowMs
  }
  for (const [nowMs, { length }] of times) {
    if (waiting !== undefined && waiting.dueMs <= nowMs) {
      send(waiting.count, waiting.dueMs)
      waiting = undefined
    }
    const dueMs = dueTime(rule, nowMs, lastMs)
    if (dueMs <= nowMs) send(length, nowMs)
    else waiting = { count: Math.min((waiting?.count ?? 0) + length, HELD_MAX), dueMs: waiting?.dueMs ?? dueMs }
  }
  if (waiting !== undefined) send(waiting.count, waiting.dueMs)
  return messages
}
