import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BufferPool } from '../../memory/buffer-pool.ts'
import { HeldBytes, RequestBody } from './request-body.ts'

const arrayBuffer = (bytes: Uint8Array) => new Uint8Array(bytes).buffer

const memory = new BufferPool(1024 * 1024)

describe('RequestBody', () => {
  it('is the concatenation of its chunks, however they were split, announced or not', () => {
    const chunks = fc.array(fc.uint8Array({ maxLength: 100_000, size: 'max' }), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(chunks, fc.boolean(), (parts, announced) => {
        const whole = Buffer.concat(parts)
        const held = new HeldBytes(Infinity)
        const body = new RequestBody(held, memory, announced ? whole.length : 4_000_000)
        parts.forEach((part, index) => {
          expect(body.append(arrayBuffer(part), index === parts.length - 1)).toBe(true)
        })
        expect(body.bytes.equals(whole)).toBe(true)
        expect(held.used).toBeGreaterThanOrEqual(whole.length)
        body.release()
        body.release()
        expect(held.used).toBe(0)
      }),
      { numRuns: 25 },
    )
  })

  it('survives the reuse of the memory of a chunk', () => {
    const chunk = new Uint8Array([1, 2, 3])
    const body = new RequestBody(new HeldBytes(100), memory, 3)
    body.append(chunk.buffer, true)
    chunk.fill(9)
    expect([...body.bytes]).toEqual([1, 2, 3])
  })

  it('takes memory for the bytes that have arrived, not for the announced length', () => {
    const held = new HeldBytes(Infinity)
    const body = new RequestBody(held, memory, 20 * 1024 * 1024)
    body.append(new ArrayBuffer(100), false)
    expect(held.used).toBe(64 * 1024)
  })

  it('keeps nothing of a chunk that exceeds the ceiling', () => {
    const held = new HeldBytes(100)
    const first = new RequestBody(held, memory, 80)
    const second = new RequestBody(held, memory, 80)
    expect(first.append(new ArrayBuffer(80), true)).toBe(true)
    expect(second.append(new ArrayBuffer(80), true)).toBe(false)
    expect(held.used).toBe(80)
    expect(second.size).toBe(0)
  })

  it('uses a body that arrived whole without a copy, and counts it until it is released, even after its memory is freed', () => {
    const held = new HeldBytes(100)
    const chunk = new Uint8Array([1, 2, 3])
    const body = new RequestBody(held, memory, 3)
    expect(body.lend(chunk.buffer)).toBe(true)
    expect(body.bytes.buffer).toBe(chunk.buffer)
    body.forget()
    expect(held.used).toBe(3)
    body.release()
    body.release()
    expect(held.used).toBe(0)
    expect(new RequestBody(held, memory, 101).lend(new ArrayBuffer(101))).toBe(false)
  })
})
