import { expect } from 'vitest'
import { type TracesPage, tracesPageSchema } from '../../../../schemas/http/traces/search.ts'
import { newId } from '../../../../shared/directory/directory.ts'
import { insertSpans, putWorkspace, type StoredSpan, signToken } from '../../../support/services/api.ts'
import { sharedServices } from '../../../support/services/shared-services.ts'
import { api, client, id, nextTraceId } from './fixture.ts'

export const MS = 1_000_000n
let workspaces = 0

interface Searched {
  readonly store: (spans: readonly Partial<StoredSpan>[], traceId?: string) => Promise<string>
  readonly list: (query?: Record<string, string>) => Promise<TracesPage>
  readonly ask: (query: Record<string, string>) => Promise<{ status: number; body: unknown }>
  readonly workspaceId: string
}

/** A workspace of its own, so that a list has nothing but what the test has stored. */
export async function newWorkspace(): Promise<Searched> {
  const slug = `search-${process.pid}-${workspaces++}`
  const workspaceId = newId('ws')
  await putWorkspace(sharedServices().redisUrl, { id: workspaceId, slug, userId: `user_${slug}` })
  const token = await signToken({ org: slug, sub: `user_${slug}` })
  async function ask(query: Record<string, string>) {
    const response = await fetch(`${api.baseUrl}/v3/traces?${new URLSearchParams(query)}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    return { status: response.status, body: (await response.json()) as unknown }
  }
  return {
    workspaceId,
    ask,
    async list(query = {}) {
      const { status, body } = await ask(query)
      expect({ status, body }).toMatchObject({ status: 200 })
      return tracesPageSchema.parse(body)
    },
    async store(spans, traceId = nextTraceId()) {
      await insertSpans(
        client,
        spans.map((span, i) => ({ spanId: id(i + 1), ...span, workspaceId, traceId })),
      )
      return traceId
    },
  }
}

/** A span that started some milliseconds ago, and arrived when it ended. */
export function ago(startMs: number, lengthMs = 1): Partial<StoredSpan> {
  const start = Date.now() - startMs
  return {
    startTimeUnixNano: BigInt(start) * MS,
    endTimeUnixNano: BigInt(start + lengthMs) * MS,
    receivedAt: start + lengthMs,
  }
}

export const idsOf = ({ traces }: TracesPage) => traces.map(({ traceId }) => traceId)
