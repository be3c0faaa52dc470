import type { z } from 'zod'
import type { PermittedOperation } from '../../../schemas/http/operation.ts'
import type { Reply, Route } from '../../../shared/http/route.ts'
import { type BodyRequest, bodyRoute } from '../../http/body-route.ts'
import type { CreationRouteDeps } from '../../http/creation-route.ts'
import type { GuardedRouteDeps } from '../../http/guarded-route.ts'
import { type Outcome, renderOutcome, replyUnlessUnavailable } from '../../http/outcome.ts'
import { withinShares } from '../../http/read-shares.ts'
import { FINDINGS } from '../../http/resource.ts'

/** Dependencies of every route that changes a finding. */
export type ChangeRouteDeps = GuardedRouteDeps & CreationRouteDeps

/** A change whose caller is accepted and whose body is valid. */
export interface ChangeRequest<B> extends Pick<BodyRequest<B>, 'caller' | 'body' | 'param'> {
  /** Fires when the deadline of the request has passed or its client has left. */
  readonly deadline: AbortSignal
}

/**
 * Returns the route of an operation that changes a finding. It reads ClickHouse, so it runs within the share of its workspace, and
 * writes to the directory, so it is refused while that is nearly full.
 */
export function changeRoute<S extends z.ZodType, T>(
  { authenticate, directoryMemory, logger, queryTimeoutMs, shares }: ChangeRouteDeps,
  operation: PermittedOperation,
  body: S,
  run: (request: ChangeRequest<z.infer<S>>) => Promise<Outcome<T>>,
  reply: (value: T) => Reply,
): Route {
  return bodyRoute(authenticate, operation, {
    resource: FINDINGS,
    body,
    refuse: () => directoryMemory.refuse(),
    handle({ exchange, closed, ...request }) {
      const deadline = AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed])
      const makeReply = async () => renderOutcome(await run({ ...request, deadline }), { operation, reply })
      const shared = { owner: request.caller.workspaceId, operation, signal: deadline }
      return replyUnlessUnavailable(() => withinShares(shares, shared, makeReply), {
        operation,
        unavailable: FINDINGS.unavailable,
        logger,
        request: exchange,
        closed,
      })
    },
  })
}
