import { exchangeMcp, MCP_DEPTH_MAX, mcpMessageSchema, mcpProblem } from '../../schemas/http/mcp.ts'
import { PROBLEMS, type Problem } from '../../schemas/http/problems.ts'
import { bodyTypeFault, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import { problemHeaders, type Reply, type Route } from '../../shared/http/route.ts'
import { type GuardedRouteDeps, guardOf } from '../http/guarded-route.ts'
import { replyUnlessUnavailable } from '../http/outcome.ts'
import { withinShares } from '../http/read-shares.ts'
import type { Resource } from '../http/resource.ts'
import type { CallDeps } from './call-tool.ts'
import { exchangeMessage, PROTOCOL_HEADERS } from './exchange.ts'

type Deps = GuardedRouteDeps & CallDeps

const MESSAGES: Resource = {
  notFound: { code: 'NOT_FOUND', message: 'there is no such workspace' },
  unavailable: {
    code: 'INGEST_INFRA_UNAVAILABLE',
    message: 'the credential cannot be checked: retry after the delay',
    retryAfterSeconds: 5,
  },
}

/** Programs send no Origin. A page that has a token would have it from its user, and a page that rebinds a name has none. */
const FROM_A_PAGE: Problem = {
  code: 'PERMISSION_DENIED',
  message: 'the header Origin must be absent: pages of browsers cannot use this operation',
}

/**
 * Returns the route of the Model Context Protocol (docs/api/other-tools.md#mcp). The checks are those of a guarded route with a
 * body, after that of the origin, which the protocol demands. Every refusal has the form of JSON-RPC.
 */
export function mcpRoute(deps: Deps): Route {
  const { authenticate, logger, queryTimeoutMs, shares } = deps
  const guard = guardOf(exchangeMcp, MESSAGES)
  return operationRoute(exchangeMcp, {
    renderProblem: renderMcpProblem,
    async accept(head, arriving) {
      const closed = head.closed()
      const type = bodyTypeOf(head)
      const authorization = head.header('authorization')
      const headers = Object.fromEntries(
        PROTOCOL_HEADERS.flatMap(name => {
          const value = head.header(name)
          return value === undefined ? [] : [[name, value]]
        }),
      )
      if (head.header('origin') !== undefined) return renderMcpProblem(FROM_A_PAGE)
      const accepted = await authenticate(authorization, guard, undefined, arriving)
      if (!accepted.ok) return renderMcpProblem(accepted.problem)
      arriving.belongsTo(accepted.caller.workspaceId)
      return async bytes => {
        const fault = bodyTypeFault(type, ['application/json'])
        if (fault) return renderMcpProblem(fault)
        const message = parseJsonBody(mcpMessageSchema, bytes, MCP_DEPTH_MAX)
        if (!message.ok) return renderMcpProblem({ code: 'REQUEST_INVALID', message: message.fault })
        const access = await authenticate(authorization, guard, undefined, arriving)
        if (!access.ok) return renderMcpProblem(access.problem)
        const { caller } = access
        const deadline = AbortSignal.any([AbortSignal.timeout(queryTimeoutMs), closed])
        const shared = { owner: caller.workspaceId, operation: exchangeMcp, signal: deadline }
        const makeReply = () => exchangeMessage(deps, message.value, headers, { caller, deadline, exchange: arriving })
        const reply = await replyUnlessUnavailable(() => withinShares(shares, shared, makeReply), {
          ...{ operation: exchangeMcp, unavailable: MESSAGES.unavailable, logger, request: arriving, closed },
        })
        return reply.status === 429 || reply.status === 503 ? inMcpForm(reply) : reply
      }
    },
  })
}

function renderMcpProblem(problem: Problem): Reply {
  const status = problem.status ?? PROBLEMS[problem.code].status
  return { status, headers: problemHeaders(problem), body: JSON.stringify(mcpProblem(problem)) }
}

/** Returns a reply in the common form of problems in that of JSON-RPC. */
function inMcpForm(reply: Reply): Reply {
  return { ...reply, body: JSON.stringify(mcpProblem(JSON.parse(String(reply.body)))) }
}
