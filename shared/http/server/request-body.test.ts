import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KIB, MIB } from '../../../schemas/units.ts'
import { FairShares } from '../../concurrency/fair-shares.ts'
import { BodyMemory } from './body-memory.ts'
import { type BodyContext, RequestBody } from './request-body.ts'

const arrayBuffer = (bytes: Uint8Array) => new Uint8Array(bytes).buffer

function contextOf(limitBytes: number, more: Partial<BodyContext> = {}): BodyContext {
  const held = new FairShares(limitBytes, 2)
  return {
    held,
    places: new FairShares(10),
    memory: new BodyMemory(held, limitBytes),
    pace: { idleSweeps: 30, graceSweeps: 30, bytesPerSweep: 16 * KIB },
    ...more,
  }
}

/** Appends this many bytes in pieces of uWS' usual size, and returns how many of them were kept. */
function appendAll(body: RequestBody, bytes: number, context: BodyContext, peaks: number[] = []): number {
  const chunk = new ArrayBuffer(512 * KIB)
  for (let at = 0; at < bytes; at += chunk.byteLength) {
    const piece = bytes - at < chunk.byteLength ? chunk.slice(0, bytes - at) : chunk
    if (!body.append(piece, at + piece.byteLength === bytes)) return at
    peaks.push(context.held.used)
  }
  return bytes
}

describe('RequestBody', () => {
  it('is the concatenation of its chunks, however they were split, announced or not', () => {
    const chunks = fc.array(fc.uint8Array({ maxLength: 100_000, size: 'max' }), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(chunks, fc.boolean(), (parts, announced) => {
        const whole = Buffer.concat(parts)
        const context = contextOf(Infinity)
        const body = new RequestBody(context, announced ? whole.length : 4_000_000, 'a')
        parts.forEach((part, index) => {
          expect(body.append(arrayBuffer(part), index === parts.length - 1)).toBe(true)
        })
        expect(body.bytes.equals(whole)).toBe(true)
        expect(context.held.used).toBeGreaterThanOrEqual(whole.length)
        body.release()
        body.release()
        expect(context.held.used).toBe(0)
      }),
      { numRuns: 25 },
    )
  })

  it('survives the reuse of the memory of a chunk', () => {
    const chunk = new Uint8Array([1, 2, 3])
    const body = new RequestBody(contextOf(100), 3, 'a')
    body.append(chunk.buffer, true)
    chunk.fill(9)
    expect([...body.bytes]).toEqual([1, 2, 3])
  })

  it('takes memory for the bytes that have arrived, not for the announced length', () => {
    const context = contextOf(Infinity)
    const body = new RequestBody(context, 20 * MIB, 'a')
    body.append(new ArrayBuffer(1), false)
    expect(context.held.used).toBe(KIB)
    body.append(new ArrayBuffer(1_500), false)
    expect(context.held.used).toBe(2 * KIB)
    body.append(new ArrayBuffer(70 * KIB), false)
    expect(context.held.used).toBeLessThan(72 * KIB)
  })

  it('counts the copy that is made while it grows', () => {
    const context = contextOf(80 * KIB)
    const body = new RequestBody(context, MIB, 'a')
    expect(body.append(new ArrayBuffer(32 * KIB), false)).toBe(true)
    expect(body.append(new ArrayBuffer(1), false)).toBe(false)
    expect(context.held.used).toBe(32 * KIB)
  })

  it('keeps nothing of a chunk that exceeds the ceiling', () => {
    const context = contextOf(120)
    const first = new RequestBody(context, 80, 'a')
    const second = new RequestBody(context, 80, 'b')
    expect(first.append(new ArrayBuffer(80), true)).toBe(true)
    expect(second.append(new ArrayBuffer(80), true)).toBe(false)
    expect(context.held.used).toBe(80)
    expect(second.size).toBe(0)
  })

  it('of the largest size fits into two thirds of 96 MiB while others hold 32 MiB', () => {
    const context = contextOf(96 * MIB)
    context.held.take('others', 32 * MIB)
    const body = new RequestBody(context, 64 * MIB, 'a')
    const peaks: number[] = []
    expect(appendAll(body, 64 * MIB, context, peaks)).toBe(64 * MIB)
    expect(Math.max(...peaks)).toBe(96 * MIB)
    expect(body.bytes.length).toBe(64 * MIB)
    body.release()
    expect(context.held.used).toBe(32 * MIB)
  })

  it('leaves room for others when one owner takes all it can', () => {
    const context = contextOf(96 * MIB)
    const bodies = Array.from({ length: 100 }, () => new RequestBody(context, 10 * MIB, 'a'))
    const kept = bodies.filter(body => appendAll(body, 9 * MIB, context) === 9 * MIB).length
    expect(kept).toBeGreaterThan(3)
    expect(context.held.used).toBeLessThanOrEqual(64 * MIB)
    expect(appendAll(new RequestBody(context, 10 * MIB, 'b'), 10 * MIB, context)).toBe(10 * MIB)
  })

  it('moves its bytes to an owner that becomes known, or frees them if that one has too many', () => {
    const context = contextOf(270)
    context.held.take('a', 60)
    const body = new RequestBody(context, 100, '')
    body.append(new ArrayBuffer(100), false)
    expect(body.assign('a')).toBe(true)
    expect([context.held.heldBy(''), context.held.heldBy('a')]).toEqual([0, 160])
    const second = new RequestBody(context, 100, '')
    second.append(new ArrayBuffer(100), false)
    expect(second.assign('a')).toBe(false)
    expect([context.held.heldBy(''), context.held.heldBy('a')]).toEqual([0, 160])
  })

  it('uses a body that arrived whole without a copy, and counts it until it is released, even after its memory is freed', () => {
    const context = contextOf(100)
    const chunk = new Uint8Array([1, 2, 3])
    const body = new RequestBody(context, 3, 'a')
    expect(body.lend(chunk.buffer)).toBe(true)
    expect(body.bytes.buffer).toBe(chunk.buffer)
    body.forget()
    expect(context.held.used).toBe(3)
    body.release()
    body.release()
    expect(context.held.used).toBe(0)
    expect(new RequestBody(context, 101, 'a').lend(new ArrayBuffer(101))).toBe(false)
  })

  it('is too slow after 30 sweeps and one more for each 16 KiB, or after 30 without data', () => {
    const context = contextOf(Infinity)
    const dripping = new RequestBody(context, MIB, 'a')
    const steady = new RequestBody(context, MIB, 'a')
    const stalled = new RequestBody(context, MIB, 'a')
    stalled.append(new ArrayBuffer(900 * KIB), false)
    for (let sweep = 1; sweep <= 30; sweep++) {
      dripping.append(new ArrayBuffer(1), false)
      if (sweep > 29) steady.append(new ArrayBuffer(16 * KIB), false)
      expect([dripping.sweep(), steady.sweep(), stalled.sweep()]).toEqual([undefined, undefined, undefined])
    }
    for (let sweep = 31; sweep <= 60; sweep++) {
      dripping.append(new ArrayBuffer(1), false)
      steady.append(new ArrayBuffer(16 * KIB), false)
      expect(steady.sweep()).toBe(undefined)
      expect(dripping.sweep()).toMatchObject({ status: 408 })
      expect(stalled.sweep()).toMatchObject({ status: 408 })
    }
  })
})
