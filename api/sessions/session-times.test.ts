import { expect, it } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../schemas/units.ts'
import { sessionTimes } from './session-times.ts'

const NOW = Date.parse('2026-11-27T12:00:00.000Z')
const ago = (ms: number) => NOW - ms
const nano = (ms: number) => String(BigInt(ms) * 1_000_000n)
const NONE = { firstNano: '0', lastNano: '0', latenessMs: '0' }

/** A session by how long ago, in ms, its requests arrived, its events were recorded, and its spans were. */
function timesOf(session: {
  readonly arrived?: readonly [number, number]
  readonly recorded?: readonly [first: number, last: number, lateness: number]
  readonly spans?: readonly [first: number, last: number, lateness: number]
  readonly sent?: readonly [number, number]
}) {
  const { arrived, recorded, spans, sent = spans } = session
  const stated = (times: typeof spans) =>
    times ? { firstNano: nano(ago(times[0])), lastNano: nano(ago(times[1])), latenessMs: String(times[2]) } : NONE
  const requests = (arrived ?? recorded) && {
    ...{ id: 's', surfaceIds: [], replayChunkCount: '0', ...stated(recorded) },
    firstArrivalMs: arrived ? String(ago(arrived[0])) : '0',
    lastArrivalMs: arrived ? String(ago(arrived[1])) : '0',
  }
  const ofSpans = sent && {
    ...{ id: 's', traceCount: '1', errorCount: '0', ...stated(spans) },
    ...{ firstSentNano: nano(ago(sent[0])), lastSentNano: nano(ago(sent[1])) },
  }
  const times = sessionTimes(requests, ofSpans, NOW)
  return (
    times && [NOW - Date.parse(times.firstSeenAt), NOW - Date.parse(times.lastSeenAt), times.timesOfArrival ?? false]
  )
}

it.each<[string, Parameters<typeof timesOf>[0], ReturnType<typeof timesOf>]>([
  ['nothing', {}, undefined],
  ['arrivals alone', { arrived: [HOUR_MS, 5] }, [HOUR_MS, 5, true]],
  ['spans alone', { spans: [HOUR_MS, 7, 0] }, [HOUR_MS, 7, false]],
  ['what happened, and heartbeats of the time after', { arrived: [9, 1], spans: [20, 10, 3] }, [20, 1, false]],
  ['what was sent afterwards', { arrived: [9, 1], spans: [DAY_MS, HOUR_MS, HOUR_MS] }, [DAY_MS, HOUR_MS, false]],
  [
    'a recording that was punctual, beside spans that were late',
    {
      ...{ arrived: [9, 1], recorded: [30, 20, 1], spans: [DAY_MS, HOUR_MS, HOUR_MS] },
    },
    [DAY_MS, 1, false],
  ],
  ['the future', { spans: [10, -MINUTE_MS, 0] }, [10, 0, false]],
  ['a wrong clock beside arrivals', { arrived: [9, 1], sent: [900 * DAY_MS, 900 * DAY_MS] }, [9, 1, true]],
  ['a wrong clock alone', { sent: [900 * DAY_MS, -DAY_MS] }, [900 * DAY_MS, 0, false]],
])('the times of a session are those of %s', (_, session, expected) => {
  expect(timesOf(session)).toEqual(expected)
})
