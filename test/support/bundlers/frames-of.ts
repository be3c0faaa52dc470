import { expect } from 'vitest'
import { findingAnswerSchema, findingsPageSchema } from '../../../schemas/http/findings/schemas.ts'
import type { Stack } from '../services/stack.ts'

/** Returns the frames of the finding of a service, or undefined if it has none yet. */
export async function framesOf(stack: Stack, service: string) {
  const { findings } = findingsPageSchema.parse(await read(stack, '/v3/findings'))
  const own = findings.find(({ serviceName }) => serviceName === service)
  return own && findingAnswerSchema.parse(await read(stack, `/v3/findings/${own.id}`)).finding.frames
}

async function read({ apiUrl, secrets }: Stack, path: string): Promise<unknown> {
  const answer = await fetch(apiUrl + path, {
    headers: { authorization: `Bearer ${secrets.sessionToken}` },
    signal: AbortSignal.timeout(10_000),
  })
  expect(answer.status).toBe(200)
  return answer.json()
}
