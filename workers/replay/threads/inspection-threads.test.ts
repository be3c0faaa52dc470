import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { closeSync, constants, openSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BroadcastChannel } from 'node:worker_threads'
import { deflateSync, gunzipSync, gzipSync } from 'node:zlib'
import { pino } from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import type { ScrubbingRule } from '../../../schemas/records/scrubbing.ts'
import { MIB } from '../../../schemas/units.ts'
import type { Lane } from '../../../shared/queue/queue.ts'
import { isMemoryError, TransientError } from '../../../shared/runtime/errors.ts'
import { Scrubber } from '../../../shared/scrubbing/scrubber.ts'
import { startAwakeClock } from '../../../test/support/count-awake-ms.ts'
import type { InspectionReport } from '../../../test/support/hostile/mortal-inspection.ts'
import { until } from '../../../test/support/until.ts'
import { inspectChunk } from '../inspect-chunk.ts'
import { type Inspection, type InspectionOptions, startInspection } from './inspection-threads.ts'

const logger = pino({ level: 'silent' })
const MORTAL = new URL('../../../test/support/hostile/mortal-inspection.ts', import.meta.url)
const KILLED = { ok: false, reason: { label: 'killed_worker', detail: '3 threads ended while they read it' } }
let inspection: Inspection | undefined
let markers: string[] = []

afterEach(async () => {
  await inspection?.close()
  await Promise.all(markers.map(marker => rm(marker, { force: true })))
  markers = []
})

/** Returns the path of a file that does not exist, and is removed after the test. */
function newMarker(): string {
  const marker = join(tmpdir(), `penstock-${randomUUID()}`)
  markers.push(marker)
  return marker
}

/** Runs the task with the reports of threads, as they arrive. */
async function withReports(task: (reports: readonly InspectionReport[]) => Promise<void>): Promise<void> {
  const reports: InspectionReport[] = []
  const channel = new BroadcastChannel('mortal inspections')
  channel.onmessage = event => reports.push((event as { data: InspectionReport }).data)
  await task(reports).finally(() => channel.close())
}

function start(options: InspectionOptions) {
  const started = startInspection(logger, { threads: 2, ...options })
  inspection = started
  return (body: Buffer, encoding: 'gzip' | 'identity', lane: Lane = 'express') => started.inspect(body, encoding, lane)
}

it('finds the same on threads as without, many chunks at a time and chunks in parts of one payload', async () => {
  const inspect = start({})
  const lines = (count: number) => Buffer.from(`{"type":2,"timestamp":5,"data":"${'ü'.repeat(count)}"}\n`.repeat(count))
  const packed = Buffer.from(`${JSON.stringify(deflateSync('{"type":2,"timestamp":5}').toString('latin1'))}\n{"cut":`)
  const bodies = [
    lines(1),
    lines(50),
    lines(2_000),
    Buffer.from('no\n'),
    Buffer.from('{"a":'),
    Buffer.from(' '),
    packed,
  ]
  const payload = Buffer.concat(bodies)
  let end = 0
  const chunks = bodies.flatMap(({ length }) => {
    end += length
    const plain = payload.subarray(end - length, end)
    return [
      ['identity', plain] as const,
      ['gzip', gzipSync(plain)] as const,
      ['gzip', gzipSync(plain).subarray(1)] as const,
    ]
  })
  const found = await Promise.all(chunks.map(([encoding, body]) => inspect(body, encoding)))
  expect(found).toEqual(await Promise.all(chunks.map(([encoding, body]) => inspectChunk(body, encoding))))
})

it('scrubs on a thread by the rules of each chunk, hashes as without, and lives through strings full of values', async () => {
  const started = startInspection(logger, { threads: 1 })
  inspection = started
  const rulesOf = (key: string, action: ScrubbingRule['action'] = 'hash') => {
    const rules: ScrubbingRule[] = [{ name: 'r', values: ['email', 'card_number'], action }]
    return new Scrubber({ revision: 1, rules, hashKey: Buffer.from(key) }).ofValues
  }
  const body = Buffer.from('{"a":"a@b.co"}')
  const found = [rulesOf('one'), rulesOf('other'), undefined].map(rules =>
    Promise.all([started.inspect(body, 'identity', 'express', rules), inspectChunk(body, 'identity', rules)]),
  )
  const texts = (await Promise.all(found)).map(([onThread, without]) => {
    expect(onThread).toEqual(without)
    return onThread.ok && onThread.mended && gunzipSync(onThread.mended).toString()
  })
  expect([new Set(texts).size, texts[2]]).toEqual([3, undefined])
  for (const unit of ['4 ', '\\u0040a@b.co ', '4111 1111 1111 1111 ']) {
    const line = gzipSync(`{"a":"${unit.repeat((15 * MIB) / unit.length)}"}`)
    const result = await started.inspect(line, 'gzip', 'express', rulesOf('', 'mask'))
    expect(result.ok ? 'stored' : result.reason.label).toMatch(/^(?:stored|too_many_values|line_too_long)$/)
  }
})

it('inspects a chunk of the express lane before those of the bulk lane that wait', async () => {
  const inspect = start({ entry: MORTAL, threads: 1 })
  const done: string[] = []
  const take = (lane: Lane) => inspect(Buffer.from('slow'), 'identity', lane).then(() => done.push(lane))
  await Promise.all([take('bulk'), take('bulk'), take('bulk'), take('express')])
  expect(done).toEqual(['bulk', 'express', 'bulk', 'bulk'])
})

describe('a thread that ends while it reads a chunk', () => {
  it('has its chunk refused when three threads have ended, the last one alone, and harms no other chunk', async () => {
    const inspect = start({ entry: MORTAL })
    await withReports(async reports => {
      let isOver = false
      let done = 0
      const others = Array.from({ length: 4 }, async () => {
        for (; !isOver; done++) expect(await inspect(Buffer.from('slow'), 'identity')).toMatchObject({ ok: true })
      })
      expect(await inspect(Buffer.from('exit'), 'identity')).toEqual(KILLED)
      isOver = true
      await Promise.all(others)
      await until('all reports have arrived', () => reports.length === 3 + 2 * done)
      const timesOf = (command: string, moment: string) =>
        reports.filter(report => report.command === command && report.moment === moment).map(({ atNs }) => atNs)
      const attempts = timesOf('exit', 'begin')
      expect(attempts).toHaveLength(3)
      const atLast = attempts.at(-1) as bigint
      const earlier = (times: readonly bigint[]) => times.filter(time => time < atLast).length
      expect(earlier(timesOf('slow', 'begin'))).toBe(earlier(timesOf('slow', 'end')))
    })
  })

  it('has its chunk read by the next thread', async () => {
    const inspect = start({ entry: MORTAL })
    expect(await inspect(Buffer.from(`exit-once ${newMarker()}`), 'identity')).toMatchObject({ ok: true })
  })
})

describe('a thread that does not answer', () => {
  it('is ended, and its chunk is refused', async () => {
    const inspect = start({ entry: MORTAL, deadlineMs: 200 })
    expect(await inspect(Buffer.from('hang'), 'identity')).toEqual(KILLED)
  })

  it('is left alone if it cannot be ended, and its chunk is refused', async () => {
    const pipe = newMarker()
    execFileSync('mkfifo', [pipe])
    const inspect = start({ entry: MORTAL, deadlineMs: 200 })
    try {
      expect(await inspect(Buffer.from(`stuck ${pipe}`), 'identity')).toEqual(KILLED)
      expect(await inspect(Buffer.from('{}'), 'identity')).toMatchObject({ ok: true })
    } finally {
      closeSync(openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK))
    }
  })

  it('has more time when its chunk is alone', async () => {
    const deadlineMs = 500
    const marker = newMarker()
    const inspect = start({ entry: MORTAL, deadlineMs })
    await withReports(async reports => {
      const found = inspect(Buffer.from(`wait ${marker}`), 'identity')
      await until('the chunk is alone', () => reports.length === 3)
      const clock = startAwakeClock()
      await until('a chunk that is not alone would be given up', () => clock.ms > deadlineMs * 1.2)
      clock.stop()
      writeFileSync(marker, '')
      expect(await found).toMatchObject({ ok: true })
    })
  })

  it('is not blamed for a pause of the process', async () => {
    const deadlineMs = 1_000
    const marker = newMarker()
    const inspect = start({ entry: MORTAL, deadlineMs })
    await withReports(async reports => {
      const found = inspect(Buffer.from(`wait ${marker}`), 'identity')
      await until('a thread has begun', () => reports.length === 1)
      // Timers see no difference to a process that is stopped and continued: all that were due are late.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, deadlineMs * 1.5)
      setTimeout(() => writeFileSync(marker, ''))
      expect(await found).toMatchObject({ ok: true })
      expect(reports).toHaveLength(1)
    })
  })
})

describe('a thread that cannot be started', () => {
  it('has no chunk refused', async () => {
    const inspect = start({ entry: new URL('./no-such-module.ts', import.meta.url) })
    await expect(inspect(Buffer.from('{}'), 'identity')).rejects.toThrow(TransientError)
  })

  it('takes no slot if Node throws at once, and has no chunk refused', async () => {
    const entry = new URL('https://no-thread.test/')
    const inspect = start({ entry, threads: 1 })
    const errors = [1, 2, 3].map(() => inspect(Buffer.from('{}'), 'identity').catch((error: unknown) => error))
    for (const error of await Promise.all(errors)) expect(error).toBeInstanceOf(TransientError)
    entry.href = MORTAL.href
    expect(await inspect(Buffer.from('{}'), 'identity')).toMatchObject({ ok: true })
  })
})

it('throws what a thread throws, so that a shortage of memory is not blamed on the chunk', async () => {
  const inspect = start({ entry: MORTAL })
  const error = await inspect(Buffer.from('no-memory'), 'identity').catch((thrown: unknown) => thrown)
  expect(isMemoryError(error)).toBe(true)
  await expect(inspect(Buffer.from('mistake'), 'identity')).rejects.toThrow(TypeError)
  expect(await inspect(Buffer.from('{}'), 'identity')).toMatchObject({ ok: true })
})
