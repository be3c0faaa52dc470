import type { z } from 'zod'
import { readFinding } from '../../schemas/http/findings/operations.ts'
import {
  type FindingActivityQuery,
  findingActivityQuerySchema,
  type findingAnswerSchema,
  findingIdSchema,
} from '../../schemas/http/findings/schemas.ts'
import type { Route } from '../../shared/http/route.ts'
import { type CallerRead, type GuardedRouteDeps, guardedRoute } from '../http/guarded-route.ts'
import type { Outcome } from '../http/outcome.ts'
import { FINDINGS, notFound } from '../http/resource.ts'
import { loadFinding } from './load-finding.ts'
import { loadStandings, type StandingDeps } from './work/load-standings.ts'

interface Deps extends GuardedRouteDeps, StandingDeps {}

/** Returns the route that reads one finding: its stack, and when and where it occurred (docs/api/findings.md#findings). */
export function readFindingRoute(deps: Deps): Route {
  return guardedRoute(deps, readFinding, {
    resource: FINDINGS,
    query: findingActivityQuerySchema,
    run: ({ param, ...request }) => readFindingDetails(deps, request, param('findingId')),
  })
}

/** Reads a finding, with its standing. */
export async function readFindingDetails(
  deps: StandingDeps,
  { workspaceId, query, deadline }: CallerRead<FindingActivityQuery>,
  findingId: string,
): Promise<Outcome<z.infer<typeof findingAnswerSchema>>> {
  if (!findingIdSchema.safeParse(findingId).success) return notFound(FINDINGS)
  const [finding, standings] = await Promise.all([
    loadFinding(deps.clickhouse, { workspaceId, findingId }, query, deps.now(), deadline),
    loadStandings(deps, workspaceId, [findingId], deadline),
  ])
  if (finding === undefined) return notFound(FINDINGS)
  return { ok: true, value: { finding: { ...finding, ...standings.get(findingId) } } }
}
