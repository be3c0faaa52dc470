import { describe, expect, it } from 'vitest'
import { symbolicationRequestSchema } from '../../schemas/queues/symbolication.ts'
import { MIB, MINUTE_MS } from '../../schemas/units.ts'
import { NO_DEBUG_IDS } from './debug-ids.ts'
import { createRecentStacks, StackRequests } from './stack-requests.ts'

const ORIGIN = { workspaceId: 'ws_1', surfaceId: 'srf_1', receivedAtMs: 1_790_000_000_000 }
const STACK = 'Error: x\n    at f (https://a.test/x.js:1:2)'

const variant = (number: number) => String(number).padStart(32, '0')

type Thrown = Parameters<StackRequests['note']>[2]

/** Notes a stack as the batch of exceptions does. */
function note(requests: StackRequests, stack: Thrown, source: typeof ORIGIN = ORIGIN, day = 1): void {
  requests.note(source, `${stack.variantId} ${day}`, stack)
}

function thrown(number: number, stacktrace = STACK, serviceVersion = '1.0'): Thrown {
  const texts = { serviceName: 'shop', type: 'Error', message: 'x', fingerprint: '' }
  return {
    variantId: variant(number),
    ...texts,
    serviceVersion,
    stacktrace,
    debugIds: NO_DEBUG_IDS,
    occurredAtUnixNano: '1',
  }
}

describe('the stacks that a batch requests', () => {
  it('are one per variant and day', () => {
    const requests = new StackRequests(createRecentStacks())
    for (const stack of [thrown(1), thrown(1), thrown(2), thrown(1)]) note(requests, stack)
    for (let times = 0; times < 2; times++) note(requests, thrown(1), ORIGIN, 2)
    const bodies = requests.frames.map(frame => symbolicationRequestSchema.parse(JSON.parse(frame.body.toString())))
    expect(bodies).toEqual([1, 2, 1].map(number => ({ kind: 'stack', ...thrown(number), debugIds: {} })))
    expect(requests.frames[0]).toMatchObject(ORIGIN)
  })

  it('are not those of other languages', () => {
    const requests = new StackRequests(createRecentStacks())
    const others = [
      'java.lang.RuntimeException: x\n\tat com.shop.Cart.add(Cart.java:12)',
      'Traceback (most recent call last):\n  File "app/views.py", line 12, in handler',
      'goroutine 1 [running]:\n\t/srv/app/main.go:12 +0x1d',
      '   at Shop.Cart.Add() in C:\\src\\Cart.cs:line 12',
      "app/cart.rb:12:in `add'",
    ]
    for (const [i, stack] of others.entries()) note(requests, thrown(i, stack))
    expect(requests.frames).toEqual([])
    for (const [i, stack] of ['f@https://a.test/x.js:1:2', 'x\n    at https://a.test/x.js:1:2\r\n'].entries()) {
      note(requests, thrown(100 + i, stack))
    }
    expect(requests.frames).toHaveLength(2)
  })

  it('are requested again by a batch that is formed again, and after ten minutes', () => {
    let nowMs = 1
    const recent = createRecentStacks(() => nowMs)
    const ask = () => {
      const requests = new StackRequests(recent)
      note(requests, thrown(1))
      return requests
    }
    expect(ask().frames).toHaveLength(1)
    const stored = ask()
    expect(stored.frames).toHaveLength(1)
    stored.finished(new Set())
    expect(ask().frames).toHaveLength(0)
    nowMs = 10 * MINUTE_MS
    expect(ask().frames).toHaveLength(0)
    nowMs += 1
    expect(ask().frames).toHaveLength(1)
  })

  it('of a surface whose requests were left out are requested again, and those of others are not', () => {
    const recent = createRecentStacks()
    const other = { ...ORIGIN, workspaceId: 'ws_other' }
    const ask = () => {
      const requests = new StackRequests(recent)
      note(requests, thrown(1))
      note(requests, thrown(2), other)
      return requests
    }
    ask().finished(new Set([`${other.workspaceId}/${other.surfaceId}`]))
    expect(ask().frames.map(frame => frame.workspaceId)).toEqual(['ws_other'])
  })

  it('are removed with a refused payload', () => {
    const requests = new StackRequests(createRecentStacks())
    note(requests, thrown(1))
    requests.mark()
    note(requests, thrown(2))
    requests.rewind()
    expect(requests.frames).toHaveLength(1)
    note(requests, thrown(2))
    expect(requests.frames).toHaveLength(2)
  })

  it('are bounded in number and bytes', () => {
    const requests = new StackRequests(createRecentStacks())
    for (let i = 0; i < 2_000; i++) note(requests, thrown(i))
    expect(requests.frames).toHaveLength(500)
    requests.reset()
    const long = `${'x'.repeat(32_000)}\n${STACK}`
    for (let i = 0; i < 2_000; i++) note(requests, thrown(i, long))
    const bytes = requests.frames.reduce((sum, frame) => sum + frame.body.length, 0)
    expect(bytes).toBeLessThan(4 * MIB + 40_000)
    note(requests, thrown(5_000, STACK, 'v'.repeat(300)))
    expect(requests.frames.some(frame => frame.body.includes('vvvv'))).toBe(false)
  })
})
