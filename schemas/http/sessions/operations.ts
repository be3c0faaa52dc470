import { z } from 'zod'
import { PUBLIC_KEY, READER } from '../credentials.ts'
import { EXAMPLE } from '../example-values.ts'
import { SMALL_BODY_BYTES } from '../limits.ts'
import type { Operation, PermittedOperation, RoutedOperation } from '../operation.ts'
import { publicKeyProblems, sessionsProblems } from '../problem-sets.ts'
import { ANSWERS } from './examples.ts'
import { identifySessionSchema } from './identify-session.ts'
import { heartbeatSchema, sessionAnswerSchema, sessionIdSchema, sessionResponseSchema } from './schemas.ts'

/** Path of operations on one session. */
export const sessionPath = z.object({
  sessionId: sessionIdSchema.meta({
    description: 'The id of the session, as the SDK generated it.',
    example: EXAMPLE.sessionId,
  }),
})

const acknowledged = {
  status: 200,
  description: 'On disk.',
  contents: { 'application/json': { schema: sessionResponseSchema, example: { ok: true } } },
} as const

/** Returns a JSON body that may also be sent as `text/plain`, because beacons can send nothing else. */
function jsonContents(schema: z.ZodType, example: unknown) {
  return { 'application/json': { schema, example }, 'text/plain': { schema, example } }
}

/** The part of identifySession that does not depend on the installation (docs/contract.md#identify). */
export const identifySession = {
  method: 'POST',
  path: '/v3/session/identify',
  service: 'frontier-runtime',
  credentials: PUBLIC_KEY,
  cors: true,
  body: { limitBytes: SMALL_BODY_BYTES },
} as const satisfies RoutedOperation

/** Returns identifySession as an installation with these identity providers documents it. */
export function identifySessionWith(identityProviders: readonly string[]): Operation {
  const example = {
    sessionId: EXAMPLE.sessionId,
    identifier: 'user-7',
    source: { type: 'custom', name: 'Our sign-in' },
    email: 'ada@example.com',
    traits: { plan: 'team' },
  }
  return {
    ...identifySession,
    operationId: 'identifySession',
    tag: 'sessions',
    summary: 'Attach an end user to a session',
    description: `Accepted identity providers: ${identityProviders.join(', ')}, and custom with any name.`,
    body: { ...identifySession.body, contents: jsonContents(identifySessionSchema(identityProviders), example) },
    receiptStatuses: [200],
    success: acknowledged,
    problems: publicKeyProblems,
  }
}

/** Records a heartbeat (docs/contract.md#heartbeat). */
export const heartbeat: Operation = {
  operationId: 'recordHeartbeat',
  method: 'POST',
  path: '/v3/session',
  service: 'frontier-runtime',
  tag: 'sessions',
  summary: 'Record that a device of a session is active',
  credentials: PUBLIC_KEY,
  cors: true,
  body: {
    limitBytes: SMALL_BODY_BYTES,
    contents: jsonContents(heartbeatSchema, {
      sessionId: EXAMPLE.sessionId,
      deviceId: EXAMPLE.deviceId,
    }),
  },
  receiptStatuses: [200],
  success: acknowledged,
  problems: publicKeyProblems,
}

/** Reads a session (docs/contract.md#sessions). */
export const readSession: PermittedOperation = {
  operationId: 'readSession',
  method: 'GET',
  path: '/v3/sessions/:sessionId',
  service: 'api-analytics',
  tag: 'sessions',
  summary: 'Read a session: identities, devices, traces, findings and replay',
  credentials: READER,
  permission: 'org:sessions:read',
  parameters: { path: sessionPath },
  success: {
    status: 200,
    description: 'The session. Lists are ordered newest first, with at most 100 entries each.',
    contents: { 'application/json': { schema: sessionAnswerSchema, example: ANSWERS.readSession } },
  },
  problems: sessionsProblems,
}
