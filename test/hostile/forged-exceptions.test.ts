import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { KIB } from '../../schemas/units.ts'
import { GZIPPED, keepAttacking, PROTOBUF } from '../support/hostile/attacker.ts'
import { failedSpans, spansWithExceptions, spanWith } from '../support/hostile/bodies.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { until } from '../support/until.ts'

const STACK_BYTES = 32 * KIB
/** Stacks of 32 KiB. Each is that of another variant, and most frames are of the application. */
const STACKS: readonly ((seed: string) => string)[] = [
  seed => filled(`Error: ${seed}\n`, i => `    at ${seed}${i} (https://cdn.test/${seed}.js:${i}:9)\n`),
  seed =>
    filled(`java.lang.Error: ${seed}\n`, i => `Caused by: a.B${i}: ${seed}\n\tat com.${seed}.C.run(C.java:${i})\n`),
  seed =>
    filled('Traceback (most recent call last):\n', i => `  File "/srv/${seed}.py", line ${i}, in f${i}\n    run()\n`),
  seed =>
    filled(`panic: ${seed}\n\ngoroutine 1 [running]:\n`, i => `main.${seed}${i}(0x1)\n\t/srv/main.go:${i} +0x1\n`),
  seed => filled(`System.Exception: ${seed}\n`, i => `   at Shop.${seed}.Run${i}() in /srv/Shop.cs:line ${i}\n`),
  seed => filled(seed, () => '('),
  seed => seed + randomBytes(STACK_BYTES).toString('latin1').slice(seed.length),
]
const EXCEPTIONS_OF_REQUEST = 21
/** The most of a payload that are kept. */
const FINDINGS_OF_REQUEST = 200

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

interface Finding {
  readonly type: string
  readonly lastSeenAt: string
}

it('an occurrence of the year 2554 was last seen today', async () => {
  const exception = { type: 'CartError', message: 'forged' }
  const body = spanWith({ exception, exceptionTimeUnixNano: 2n ** 64n - 1n })
  await service.attacker.post('/drain/v1/traces', body, PROTOBUF)
  const forged = await until('the forged occurrence is stored', async () =>
    (await findings()).find(({ type }) => type === 'CartError'),
  )
  // Later occurrences replace its message when this time has passed.
  expect(Date.parse(forged.lastSeenAt)).toBeLessThan(Date.now() + 600_000)
})

it('thousands of made-up findings a second harm no other client', async () => {
  const bodies = Array.from({ length: 10 }, (_, i) => gzipSync(failedSpans(10_000, `y${i}`)))
  const { attacker } = service
  expectUnharmed(
    await service.during(() =>
      keepAttacking(8, i => attacker.post('/drain/v1/traces', bodies[i % bodies.length] as Buffer, GZIPPED)),
    ),
  )
})

it('whole stacks of every language, none sent twice, harm no other client', async () => {
  await attackWith(EXCEPTIONS_OF_REQUEST, number => {
    const seed = `s${number.toString(36)}`
    const stack = STACKS[number % STACKS.length] as (seed: string) => string
    return { 'exception.message': seed, 'exception.stacktrace': stack(seed) }
  })
})

it('a fingerprint of its own for each exception harms no other client', async () => {
  await attackWith(FINDINGS_OF_REQUEST, number => ({ 'exception.fingerprint': `f${number}` }))
})

/** Attacks with numbered exceptions, `count` a request, and expects that other clients notice nothing. */
async function attackWith(
  count: number,
  attributesOf: (number: number) => Readonly<Record<string, string>>,
): Promise<void> {
  const { attacker } = service
  const send = (request: number) => {
    const exceptions = Array.from({ length: count }, (_, i) => ({
      'exception.type': 'Forged',
      ...attributesOf(request * count + i),
    }))
    return attacker.post('/drain/v1/traces', gzipSync(spansWithExceptions(exceptions), { level: 1 }), GZIPPED)
  }
  expectUnharmed(await service.during(() => keepAttacking(8, send)))
}

function filled(head: string, lineOf: (i: number) => string): string {
  let text = head
  for (let i = 1; text.length < STACK_BYTES; i++) text += lineOf(i)
  return text.slice(0, STACK_BYTES)
}

async function findings(): Promise<Finding[]> {
  const response = await fetch(`${service.attacker.apiUrl}/v3/findings`, {
    headers: { authorization: `Bearer ${service.attacker.tenant.sessionToken}` },
  })
  return ((await response.json()) as { findings: Finding[] }).findings
}
