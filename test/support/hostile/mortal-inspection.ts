/**
 * A thread that inspects chunks, and does what the text of a chunk commands. It reports when it begins and ends a chunk, in ns
 * of the clock that all threads share.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { BroadcastChannel } from 'node:worker_threads'
import { inspectChunk } from '../../../workers/replay/inspect-chunk.ts'
import { serveInspections } from '../../../workers/replay/threads/serve-inspections.ts'

/** Name of the channel of the reports. */
const REPORTS = 'mortal inspections'
/** A report of a chunk that was begun or ended. */
export interface InspectionReport {
  readonly command: string
  readonly moment: 'begin' | 'end'
  readonly atNs: bigint
}

const reports = new BroadcastChannel(REPORTS)
reports.unref()

serveInspections(async (body, encoding) => {
  const [command = '', argument = ''] = body.toString().split(' ')
  const report = (moment: InspectionReport['moment']) =>
    reports.postMessage({ command, moment, atNs: process.hrtime.bigint() } satisfies InspectionReport)
  report('begin')
  switch (command) {
    case 'exit':
      process.exit(1)
      break
    case 'exit-once':
      if (!existsSync(argument)) {
        writeFileSync(argument, '')
        process.exit(1)
      }
      return inspectChunk(Buffer.from('{}'), 'identity')
    case 'hang':
      for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000)
    case 'wait':
      while (!existsSync(argument)) await delay(5)
      return inspectChunk(Buffer.from('{}'), 'identity')
    case 'stuck':
      // Nothing interrupts a thread that opens a pipe before it has a writer.
      readFileSync(argument)
      break
    case 'no-memory':
      throw Object.assign(new Error('insufficient memory'), { code: 'Z_MEM_ERROR' })
    case 'mistake':
      throw new TypeError('the code makes a mistake')
    case 'slow':
      await delay(20)
      report('end')
      return inspectChunk(Buffer.from('{}'), 'identity')
  }
  return inspectChunk(body, encoding)
})
