import { pino } from 'pino'
import { expect, it } from 'vitest'
import type { WatermarkSurface } from '../../shared/queue/watermark.ts'
import { type CallContext, type CallDeps, callTool } from './call-tool.ts'
import type { Tool } from './tool.ts'

const READ_AT_MS = Date.UTC(2026, 0, 2)
const context = {
  caller: { workspaceId: 'ws_1', userId: 'user_1', apiKeyId: null, permissions: new Set(['org:telemetry:read']) },
  deadline: new AbortController().signal,
  exchange: { requestId: 'r' },
} as unknown as CallContext
const tool = {
  ...{ name: 'list', permission: 'org:telemetry:read', madeOf: ['traces', 'logs'], resource: {} },
  call: async () => ({ ok: true, value: { answer: { entries: [] } } }),
} as unknown as Tool

/** Calls a tool in a workspace with this number of surfaces. The one with index 1 has a request that is not stored yet. */
async function call(surfaceCount: number) {
  const asked: WatermarkSurface[] = []
  const settled = (traces: number) => ({ settledBeforeMs: { traces, logs: READ_AT_MS } })
  const deps = {
    logger: pino({ level: 'silent' }),
    now: () => READ_AT_MS,
    directory: {
      surfaces: async (workspaceId: string, { limit }: { limit: number }) =>
        Array.from({ length: Math.min(limit, surfaceCount) }, (_, i) => ({ id: `srf_${i}`, workspaceId })),
    },
    watermarks: async (surfaces: readonly WatermarkSurface[]) => {
      asked.push(...surfaces)
      return {
        readAtMs: READ_AT_MS,
        surfaces: surfaces.map((_, i) => settled(i === 1 ? READ_AT_MS - 5_000 : READ_AT_MS)),
      }
    },
    // Another workspace has a request that waits for an hour.
    oldestWatermarks: async () => ({ readAtMs: READ_AT_MS, ...settled(READ_AT_MS - 3_600_000) }),
  } as unknown as CallDeps
  const { structuredContent } = await callTool(deps, tool, {}, context)
  return { asked, evidence: structuredContent?.evidence }
}

const readAt = '2026-01-02T00:00:00.000Z'

it('states what is settled of the surfaces of the caller, and nothing of others', async () => {
  const { asked, evidence } = await call(2)
  expect(asked).toEqual([0, 1].map(i => ({ workspaceId: 'ws_1', surfaceId: `srf_${i}` })))
  expect(evidence).toEqual({ readAt, settledBefore: '2026-01-01T23:59:55.000Z' })
  expect((await call(0)).evidence).toEqual({ readAt, settledBefore: readAt })
})

it('states what is settled of all surfaces to a workspace that has too many', async () => {
  const { asked, evidence } = await call(101)
  expect(asked).toEqual([])
  expect(evidence).toEqual({ readAt, settledBefore: '2026-01-01T23:00:00.000Z' })
})
