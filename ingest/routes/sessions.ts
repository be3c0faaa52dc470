import type { z } from 'zod'
import type { RoutedOperation } from '../../schemas/http/operation.ts'
import type { SessionEvent } from '../../schemas/queues/jobs.ts'
import { bodyTypeFault, bodyTypeOf } from '../../shared/http/body-type.ts'
import { operationRoute } from '../../shared/http/operation-route.ts'
import { parseJsonBody } from '../../shared/http/parse-json-body.ts'
import type { Reply, Route } from '../../shared/http/route.ts'
import { acceptFrame } from '../commit/frame-sink.ts'
import type { IngestDeps } from '../routes.ts'
import { jsonReply, runtimeProblem, withSurface } from './surface-route.ts'

const SUCCESS = jsonReply({ ok: true })

/** An event of a session, or the rule that the request breaks although its schema takes it. */
export type MadeEvent =
  | { readonly ok: true; readonly event: SessionEvent }
  | { readonly ok: false; readonly fault: string }

/**
 * A route that takes one JSON object about a session (spec 4.1, 4.2), and answers SessionResponse (2.3) once it is on
 * disk. `makeEvent` gets what the schema has found valid, and the text that it was read from.
 */
export function sessionRoute<S extends z.ZodType>(
  deps: IngestDeps,
  operation: RoutedOperation,
  schema: S,
  makeEvent: (value: z.infer<S>, json: string) => MadeEvent,
): Route {
  return operationRoute(operation, {
    renderProblem: runtimeProblem,
    accept(head) {
      const type = bodyTypeOf(head)
      return withSurface(deps, head, surface => body => {
        const backpressure = deps.admission.refuse('sessions')
        if (backpressure) return runtimeProblem(backpressure)
        const typeFault = bodyTypeFault(type, ['application/json', 'text/plain'])
        if (typeFault) return runtimeProblem(typeFault)
        const parsed = parseJsonBody(schema, body)
        if (!parsed.ok) return invalid(parsed.fault)
        const made = makeEvent(parsed.value, parsed.json)
        if (!made.ok) return invalid(made.fault)
        const frame = {
          ...surface,
          receivedAtMs: deps.now(),
          contentType: 'application/json',
          contentEncoding: 'identity',
          attributes: '',
          body: Buffer.from(JSON.stringify(made.event)),
        } as const
        return acceptFrame(deps, 'sessions', frame, SUCCESS, runtimeProblem)
      })
    },
  })
}

function invalid(message: string): Reply {
  return runtimeProblem({ code: 'REQUEST_INVALID', message })
}
