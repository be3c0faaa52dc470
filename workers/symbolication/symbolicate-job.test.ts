import { pino } from 'pino'
import { expect, it } from 'vitest'
import type { ManifestFile } from '../../schemas/records/manifest.ts'
import { NO_RULES } from '../../shared/grouping/rules.ts'
import { decodePayload, encodePayload, type PayloadFrame } from '../../shared/queue/payload-frame.ts'
import { TransientError } from '../../shared/runtime/errors.ts'
import { ORIGINAL } from '../../test/support/original-position.ts'
import type { Move } from '../queue/payloads/payload-store.ts'
import { createChunkMatcher } from './match-chunk.ts'
import { type SymbolicateJobDeps, type SymbolicationStats, symbolicateJob } from './symbolicate-job.ts'

const SCRIPT = 'https://a.test/x.js'

/** Creates a worker in which each trace takes one unit of the time that its workspace has. */
function setUp(times: Record<string, number>) {
  const left = new Map(Object.entries(times))
  const stored: string[] = []
  const jobs = new Map<string, Buffer>()
  const stats: SymbolicationStats[] = []
  const file: ManifestFile = {
    ...{ path: 'x.js.map', hash: '', debugId: '', chunkUrl: SCRIPT, sha256: 'a'.repeat(64), size: 1, verified: true },
  }
  const deps: SymbolicateJobDeps = {
    store: {
      look: async jobId => ({ batchId: null, payload: jobs.get(jobId) ?? null }),
      holdsLocks: async () => true,
      async finishJob(jobId, _done, moves: readonly Move[]) {
        jobs.delete(jobId)
        for (const move of moves) jobs.set(move.jobId, move.payload)
        return { isFirst: true } as never
      },
      giveBack() {},
    },
    addJobs: async () => {},
    manifests: {
      read: async (_, releaseSlug) => ({
        manifest: { version: 1, releaseSlug, sequence: 7, files: [file], sourceFileCount: 1, completedAt: '' },
        chunks: createChunkMatcher([file]),
        byDebugId: new Map(),
        bytes: 1,
      }),
    },
    selectSourceMaps: async () => [],
    selectReleaseStacks: async () => [],
    insertSourceMaps: async () => {},
    insertFrames: async rows => void stored.push(...rows.map(row => row.variantId)),
    insertMoves: async () => {},
    rules: { of: async () => NO_RULES, stored: async () => {} },
    tracer: {
      hasTime: workspaceId => (left.get(workspaceId) ?? 0) > 0,
      async trace({ workspaceId }, positions) {
        left.set(workspaceId, (left.get(workspaceId) ?? 0) - 1)
        return positions.map(() => ORIGINAL)
      },
    },
    logger: pino({ level: 'silent' }),
    stopping: new AbortController().signal,
    now: () => 0,
    onDone: done => void stats.push(done),
  }
  const run = (jobId: string) => symbolicateJob(deps, { jobId, token: 'token', lane: 'express' })
  return { left, stored, jobs, stats, run }
}

const variantOf = (name: string) => name.padEnd(32, 'a')

function requestOf(workspaceId: string, name: string): PayloadFrame {
  const request = {
    ...{ kind: 'stack', variantId: variantOf(name), serviceVersion: '1.0', debugIds: {}, occurredAtUnixNano: '1' },
    ...{ serviceName: 'shop', type: 'Error', message: 'm', fingerprint: '' },
    stacktrace: `Error\n    at f (${SCRIPT}:1:2)`,
  }
  return {
    ...{ workspaceId, surfaceId: 'srf_1', receivedAtMs: 1, attributes: '' },
    ...{ contentType: 'application/json', contentEncoding: 'identity', body: Buffer.from(JSON.stringify(request)) },
  }
}

it('resolves what the time of each workspace allows, and moves the rest to a job that waits for it', async () => {
  const { left, stored, jobs, stats, run } = setUp({ ws_1: 2, ws_2: 9 })
  const sent = ['b', 'c', 'd', 'e'].map(name => requestOf('ws_1', name))
  jobs.set('first', encodePayload([...sent, requestOf('ws_2', 'f')]))
  await run('first')
  expect(stored).toEqual(['b', 'c', 'f'].map(variantOf))
  expect(stats).toMatchObject([{ requests: 5, postponed: 2, resolvedFrames: 3 }])

  const [later] = jobs.keys()
  expect(later).toMatch(/^postponed-[0-9a-f]{16}-[0-9a-f]{16}$/)
  expect(decodePayload(jobs.get(later ?? '') as Buffer).map(frame => frame.body)).toEqual(
    sent.slice(2).map(frame => frame.body),
  )
  // No work is done for it until there is time again.
  await expect(run(later ?? '')).rejects.toThrow(TransientError)
  left.set('ws_1', 1)
  await run(later ?? '')
  left.set('ws_1', 1)
  const [last] = jobs.keys()
  expect(last).not.toBe(later)
  await run(last ?? '')
  expect(stored).toEqual(['b', 'c', 'f', 'd', 'e'].map(variantOf))
  expect([...jobs.keys()]).toEqual([])
})
