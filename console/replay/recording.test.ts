import { describe, expect, it } from 'vitest'
import { SECOND_MS } from '../../schemas/units.ts'
import type { ReplayChunk } from '../api/generated/client.ts'
import { Axis } from './axis.ts'
import { type Recording, recordingOf, seedOf, stretchAt, windowAt } from './recording.ts'

const START = Date.parse('2026-11-23T10:00:00.000Z')

/** A chunk by its window, number and seconds. */
function chunk(
  windowId: string,
  segment: number | string,
  from: number,
  to: number,
  more: Partial<ReplayChunk> = {},
): ReplayChunk {
  const at = (second: number) => new Date(START + second * SECOND_MS).toISOString()
  return {
    id: `chk_${windowId}_${segment}`,
    objectKey: '',
    windowId,
    segmentId: String(segment),
    firstTs: 0,
    lastTs: 0,
    firstEventAt: at(from),
    lastEventAt: at(to),
    eventCount: 10,
    hasFullSnapshot: false,
    activityCount: 1,
    storedBytes: 10,
    decompressedBytes: 100,
    receivedAt: at(to),
    ...more,
  }
}
const snapshot = { hasFullSnapshot: true }

function recorded(...chunks: ReplayChunk[]): Recording {
  const recording = recordingOf(chunks)
  if (recording === undefined) throw new Error('there is no recording')
  return recording
}

const kindsOf = (recording: Recording, window = 0) =>
  recording.windows[window]?.stretches.map(({ kind, from, to }) => [
    kind,
    (from - START) / SECOND_MS,
    (to - START) / SECOND_MS,
  ])

describe('the stretches of a window', () => {
  it('are one where chunks follow each other', () => {
    const recording = recorded(chunk('a', 0, 0, 10, snapshot), chunk('a', 1, 10.5, 20), chunk('a', 2, 25, 30))
    expect(kindsOf(recording)).toEqual([['played', 0, 30]])
  })

  it('name a loss, and what comes after it until the next snapshot', () => {
    const recording = recorded(
      chunk('a', 0, 0, 10, snapshot),
      chunk('a', 3, 40, 50),
      chunk('a', 4, 50, 60, snapshot),
      chunk('a', 6, 60, 70),
    )
    expect(kindsOf(recording)).toEqual([
      ['played', 0, 10],
      ['lost', 10, 40],
      ['doubtful', 40, 50],
      ['played', 50, 60],
      ['lost', 60, 60],
      ['doubtful', 60, 70],
    ])
  })

  it('tell an idle time from a loss', () => {
    expect(kindsOf(recorded(chunk('a', 0, 0, 10, snapshot), chunk('a', 1, 126_000, 126_010)))).toEqual([
      ['played', 0, 10],
      ['still', 10, 126_000],
      ['played', 126_000, 126_010],
    ])
  })

  it('name the time before the first snapshot, across pauses', () => {
    expect(kindsOf(recorded(chunk('a', 1, 0, 10), chunk('a', 2, 100, 110), chunk('a', 3, 110, 120, snapshot)))).toEqual(
      [
        ['blind', 0, 110],
        ['played', 110, 120],
      ],
    )
  })

  it('ignore numbers that are none', () => {
    expect(kindsOf(recorded(chunk('a', 'x', 0, 10, snapshot), chunk('a', 'z', 11, 20)))).toEqual([['played', 0, 20]])
  })

  it('begin where a snapshot is, and with it the recording', () => {
    const recording = recorded(chunk('a', 1, 0, 10), chunk('a', 2, 12, 20, snapshot), chunk('b', 0, 15, 30, snapshot))
    expect(kindsOf(recording)).toEqual([
      ['blind', 0, 12],
      ['played', 12, 20],
    ])
    expect((recording.firstPictureMs - START) / SECOND_MS).toBe(12)
  })

  it.each<[string, ReplayChunk[], string, number]>([
    ['one event', [chunk('a', 0, 5, 5)], 'pictureless', 5],
    ['one snapshot', [chunk('a', 0, 5, 5, snapshot)], 'played', 5],
    ['events of one time', [chunk('a', 0, 5, 5, snapshot), chunk('a', 1, 5, 5)], 'played', 5],
    ['no snapshot', [chunk('a', 0, 5, 9), chunk('a', 1, 9, 12)], 'pictureless', 12],
  ])('are one of a recording of %s, which is of its own time', (_, chunks, kind, end) => {
    const recording = recorded(...chunks)
    expect(kindsOf(recording)).toEqual([[kind, 5, end]])
    const { startMs, endMs, firstPictureMs } = recording
    expect([startMs, endMs, firstPictureMs].map(ms => (ms - START) / SECOND_MS)).toEqual([5, end, 5])
    expect(new Axis(recording).positionOf(startMs)).toBe(0)
  })

  it('are none without chunks', () => {
    expect(recordingOf([])).toBeUndefined()
  })
})

describe('the window of a time', () => {
  const recording = recorded(
    chunk('a', 0, 0, 100, { ...snapshot, activityCount: 0 }),
    chunk('b', 0, 20, 40, snapshot),
    chunk('c', 1, 200, 210),
    chunk('c', 2, 210, 220, snapshot),
  )
  const at = (second: number, shown?: string) => windowAt(recording, START + second * SECOND_MS, shown)?.id

  it('is the one in which something happens', () => {
    expect([at(10), at(30, 'a'), at(50, 'b')]).toEqual(['a', 'b', 'a'])
  })

  it('is the same one in the moment between two of its chunks', () => {
    const idle = { ...snapshot, activityCount: 0 }
    const recording = recorded(
      chunk('a', 0, 0, 29.5, snapshot),
      chunk('a', 1, 30, 60, snapshot),
      chunk('b', 0, 0, 29.5, idle),
      chunk('b', 1, 30, 60, idle),
    )
    expect(windowAt(recording, START + 29_800, 'b')?.id).toBe('a')
  })

  it('is one without a picture if no other is there, and the next one in a pause', () => {
    expect([at(205), at(150, 'a'), at(215)]).toEqual(['c', 'c', 'c'])
  })

  it('is played from the last snapshot before the time', () => {
    const [, , c] = recording.windows
    if (c === undefined) throw new Error('a window is missing')
    expect([seedOf(c, START + 205_000), seedOf(c, START + 230_000)]).toEqual([-1, 1])
    expect(stretchAt(c, START + 150_000)).toBeUndefined()
  })
})

describe('the axis of a seek bar', () => {
  it('gives a night little room, and finds the time of each position', () => {
    const recording = recorded(chunk('a', 0, 0, 100, snapshot), chunk('a', 1, 126_000, 126_100))
    const axis = new Axis(recording)
    expect(axis.positionOf(START)).toBe(0)
    expect(axis.positionOf(START + 126_100 * SECOND_MS)).toBeCloseTo(1)
    expect(axis.positionOf(START + 126_000 * SECOND_MS) - axis.positionOf(START + 100 * SECOND_MS)).toBeCloseTo(0.03)
    for (const second of [0, 10, 99, 5_000, 126_001, 126_100]) {
      const time = START + second * SECOND_MS
      expect(axis.timeAt(axis.positionOf(time))).toBeCloseTo(time, -1)
    }
  })

  it('has one position if everything happened at one time', () => {
    expect(new Axis(recorded(chunk('a', 0, 5, 5, snapshot))).positionOf(START + 5_000)).toBe(0)
  })
})
