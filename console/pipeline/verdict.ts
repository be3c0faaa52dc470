import type { Pipeline } from '../api/generated/client.ts'
import { counted, formatCount, sum } from '../state/format.ts'

/** Whether anything of the last 24 hours is lost, in a sentence. */
interface Verdict {
  readonly is: 'good' | 'doubt' | 'bad'
  readonly text: string
}

/** Returns the verdict on what was accepted: each request is stored, kept as a dead letter, waits, or is lost. */
export function verdictOf({ history, queues, isPartial, unavailable }: Pipeline): Verdict {
  if (history === null) {
    return {
      is: 'doubt',
      text: `Whether everything is stored cannot be read at the moment: ${unavailable ?? 'no answer'}.`,
    }
  }
  const processed = sum(history.rates.map(({ requests }) => sum(requests)))
  const waiting = queues.some(({ requests }) => requests === null) ? undefined : sum(queues.map(q => q.requests ?? 0))
  const kept = sum(history.letters.map(({ dead }) => dead))
  const lost = sum(history.letters.map(({ discarded }) => discarded))
  const refused = sum(history.refused.map(({ requests }) => requests))
  const stored = Math.max(0, processed - kept - lost - history.purgedLetters)
  const parts = [
    `${counted(processed + (waiting ?? 0), 'request')} accepted`,
    `${formatCount(stored)} stored`,
    kept > 0 && `${formatCount(kept)} kept as dead letters`,
    history.purgedLetters > 0 && `${formatCount(history.purgedLetters)} purged`,
    lost > 0 && `${formatCount(lost)} lost`,
    waiting === undefined ? 'what waits is not known' : waiting > 0 && `${formatCount(waiting)} waiting`,
    refused > 0 && `${formatCount(refused)} more refused in the response`,
  ]
  const text = parts.filter(Boolean).join(', ')
  const of = isPartial ? 'the last 24 hours, of the newest 1,000 surfaces' : 'the last 24 hours'
  if (lost > 0) return { is: 'bad', text: `${counted(lost, 'request')} lost in ${of}: ${text}.` }
  return { is: kept > 0 ? 'doubt' : 'good', text: `Nothing lost in ${of}: ${text}.` }
}
