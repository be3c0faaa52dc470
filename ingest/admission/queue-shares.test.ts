import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Problem } from '../../schemas/http/problems.ts'
import { MIB } from '../../schemas/units.ts'
import { type PlacedRequest, type QueueCounters, QueueShares, type RefusalReason } from './queue-shares.ts'
import { EXPRESS_COST, type PricedRequest, type RequestSurface } from './surface-share.ts'

/** A byte of an uncompressed body costs one. */
const MAX_COST = 100 * MIB

const surface = (id: string): RequestSurface => ({ workspaceId: `ws_${id}`, surfaceId: `srf_${id}` })
const bodyOf = (bytes: number): PricedRequest => ({
  contentType: 'application/x-protobuf',
  contentEncoding: 'identity',
  body: Buffer.alloc(bytes),
})

function given(random = 0, maxCost = MAX_COST) {
  const world = { now: 1_000_000, refusals: [] as RefusalReason[] }
  const common = { now: () => world.now, random: () => random, decodedLimit: 64 * MIB }
  const deadLetters = new QueueShares({
    ...common,
    queue: 'dead-letters',
    maxCost: 10 * MIB,
    onRefused: () => {},
  })
  const onRefused = (reason: RefusalReason) => void world.refusals.push(reason)
  const filled = [{ shares: deadLetters, reason: 'dead_letters' }] as const
  const queue = new QueueShares({ ...common, queue: 'traces', maxCost, onRefused, filled })
  return { world, queue, deadLetters }
}

/** Returns the counters of a queue with these costs of surfaces. */
function counters(costs: Record<string, number>, more: { done?: number; prices?: string[] } = {}): QueueCounters {
  const { done = 0, prices = [] } = more
  const sum = Object.values(costs).reduce((total, cost) => total + cost, 0)
  const entries = Object.entries(costs).sort(([, a], [, b]) => b - a)
  return {
    flow: { acceptedCost: String(sum + done), doneCost: String(done) },
    shares: entries.flatMap(([id, cost]) => [`ws_${id}/srf_${id}`, String(cost)]),
    prices,
  }
}

function poll(queue: QueueShares, reply: QueueCounters, memoryFree = 1) {
  queue.beginPoll()
  queue.endPoll(reply, memoryFree)
}

/** Decides on the head of a request. */
function refuse(queue: QueueShares, from: RequestSurface, contentLength: number | undefined) {
  return queue.refuse(queue.shareOf(from), contentLength)
}

/** Decides on a whole request. Returns it, or its problem. */
function place(queue: QueueShares, from: RequestSurface, body: PricedRequest): PlacedRequest | Problem {
  const request: PlacedRequest = { share: queue.shareOf(from), cost: 0, lane: 'express' }
  return queue.place(request, body) ?? request
}

/** Accepts a request, or returns false. */
function accept(queue: QueueShares, id: string, bytes: number): boolean {
  const placed = place(queue, surface(id), bodyOf(bytes))
  if ('code' in placed) return false
  queue.begin(placed)
  queue.end(placed, true)
  return true
}

describe('a surface', () => {
  it('is refused at half of the queue, while another one is accepted', () => {
    const { world, queue } = given()
    let accepted = 0
    while (accept(queue, 'a', MIB)) accepted++
    expect(accepted).toBe(50)
    expect(refuse(queue, surface('a'), 100)).toMatchObject({
      code: 'INGEST_BACKPRESSURE',
      message: 'the surface is over its share of the traces queue; retry after the delay',
    })
    expect(refuse(queue, surface('b'), 100)).toBeUndefined()
    expect(accept(queue, 'b', MIB)).toBe(true)
    expect(world.refusals).toEqual(['share', 'share'])
  })

  it('is refused when the queue is full, whatever it holds', () => {
    const { queue } = given()
    poll(queue, counters({ a: 60 * MIB, b: 40 * MIB }))
    expect(refuse(queue, surface('c'), 1)).toMatchObject({ message: expect.stringContaining('is full') })
  })

  it('is refused earlier while the memory of Redis is short', () => {
    const { world, queue } = given()
    poll(queue, counters({ a: 20 * MIB }), 0.1)
    expect(refuse(queue, surface('a'), 1)).toBeDefined()
    expect(refuse(queue, surface('b'), 1)).toBeUndefined()
    poll(queue, counters({ a: 20 * MIB }), 0)
    expect(refuse(queue, surface('b'), 1)).toBeDefined()
    expect(world.refusals).toEqual(['share', 'memory'])
  })

  it('is accepted again at 80 % of its limit, so that it does not flap', () => {
    const { queue } = given()
    poll(queue, counters({ a: 50 * MIB }))
    expect(refuse(queue, surface('a'), 0)).toBeDefined()
    poll(queue, counters({ a: 45 * MIB }))
    expect(refuse(queue, surface('a'), 0)).toBeDefined()
    poll(queue, counters({ a: 44 * MIB }))
    expect(refuse(queue, surface('a'), 0)).toBeUndefined()
    poll(queue, counters({ a: 49 * MIB }))
    expect(refuse(queue, surface('a'), 0)).toBeUndefined()
  })

  it('may send a request of any cost while it holds nothing', () => {
    const { queue } = given()
    expect(accept(queue, 'a', 90 * MIB)).toBe(true)
    expect(accept(queue, 'a', 1)).toBe(false)
  })

  it('cannot fill the queue with one request of a false size, however high its price is', () => {
    const { queue } = given()
    poll(queue, counters({}, { prices: ['ws_a/srf_a', '64'] }))
    const bomb = { ...bodyOf(100), contentEncoding: 'gzip' } as const
    bomb.body.writeUInt32LE(64 * MIB, 96)
    const placed = place(queue, surface('a'), bomb)
    if ('code' in placed) throw new Error(placed.message)
    queue.begin(placed)
    expect(refuse(queue, surface('b'), 40 * MIB)).toBeUndefined()
  })

  it('is judged on the head by what its bytes have cost', () => {
    const { queue } = given()
    poll(queue, counters({ a: 20 * MIB }, { prices: ['ws_a/srf_a', '10'] }))
    for (let i = 0; i < 50; i++) place(queue, surface('a'), bodyOf(100_000))
    expect(refuse(queue, surface('a'), 7 * MIB)).toMatchObject({ message: expect.stringContaining('share') })
    expect(refuse(queue, surface('b'), 7 * MIB)).toBeUndefined()
  })

  it('is refused while it is over its share of the dead letters, and others are not', () => {
    const { queue, deadLetters } = given()
    poll(deadLetters, counters({ a: 6 * MIB }))
    expect(refuse(queue, surface('a'), 1)).toMatchObject({ message: expect.stringContaining('could not be stored') })
    expect(refuse(queue, surface('b'), 1)).toBeUndefined()
    poll(deadLetters, counters({ a: 6 * MIB, b: 5 * MIB }))
    expect(refuse(queue, surface('c'), 1)).toBeUndefined()
  })
})

describe('a workspace with many surfaces', () => {
  const ofFlood = (i: number): RequestSurface => ({ workspaceId: 'ws_flood', surfaceId: `srf_flood${i}` })

  /** Sends one request of 100 KiB from each of this many surfaces of one workspace, and returns how many were accepted. */
  function flood(queue: QueueShares, surfaces: number): number {
    let accepted = 0
    for (let i = 0; i < surfaces; i++) {
      const placed = place(queue, ofFlood(i), bodyOf(MIB / 10))
      if ('code' in placed) continue
      queue.begin(placed)
      queue.end(placed, true)
      accepted++
    }
    return accepted
  }

  it('is refused at two thirds of the queue, while another workspace is accepted', () => {
    const { world, queue } = given()
    const accepted = flood(queue, 1_000)
    expect(accepted).toBeGreaterThan(660)
    expect(accepted).toBeLessThanOrEqual(668)
    expect(refuse(queue, ofFlood(2_000), 100)).toMatchObject({
      code: 'INGEST_BACKPRESSURE',
      message: 'the workspace is over its share of the traces queue; retry after the delay',
    })
    expect(accept(queue, 'b', MIB)).toBe(true)
    expect(new Set(world.refusals)).toEqual(new Set(['workspace_share']))
  })

  it('has room for a surface with nothing while another of its surfaces has its whole share', () => {
    const { queue } = given()
    poll(queue, counters({}))
    while (!('code' in place(queue, ofFlood(0), bodyOf(MIB))))
      queue.begin(place(queue, ofFlood(0), bodyOf(MIB)) as PlacedRequest)
    expect(queue.used).toBe(50 * MIB)
    expect(refuse(queue, ofFlood(1), MIB)).toBeUndefined()
    expect(refuse(queue, ofFlood(0), 1)).toMatchObject({ message: expect.stringContaining('the surface is over') })
  })

  it('counts all its surfaces as Redis has them, and has its share back when they are finished', () => {
    const { queue } = given()
    const shares = Array.from({ length: 700 }, (_, i) => [`ws_flood/srf_flood${i}`, String(MIB / 10)])
    const flow = { acceptedCost: String(70 * MIB), doneCost: '0' }
    expect(queue.listedSurfaces).toBe(256)
    poll(queue, { flow, shares: shares.slice(0, 256).flat(), prices: [] })
    expect(refuse(queue, ofFlood(800), 1)).toBeUndefined()
    expect(queue.listedSurfaces).toBe(10_000)
    poll(queue, { flow, shares: shares.flat(), prices: [] })
    expect(refuse(queue, ofFlood(800), 1)).toMatchObject({ message: expect.stringContaining('the workspace') })
    expect(refuse(queue, surface('b'), 1)).toBeUndefined()
    poll(queue, counters({}, { done: 70 * MIB }))
    expect(refuse(queue, ofFlood(800), 1)).toBeUndefined()
    expect(queue.listedSurfaces).toBe(256)
    expect(flood(queue, 1_000)).toBeGreaterThan(660)
  })

  it('has its share back when commits fail', () => {
    const { queue } = given()
    const places: PlacedRequest[] = []
    for (let i = 0; i < 1_000; i++) {
      const placed = place(queue, ofFlood(i), bodyOf(MIB / 10))
      if ('code' in placed) break
      queue.begin(placed)
      places.push(placed)
    }
    for (const placed of places) queue.end(placed, false)
    expect(flood(queue, 1_000)).toBe(places.length)
  })

  it('is refused while its surfaces are over its share of the dead letters together', () => {
    const { queue, deadLetters } = given()
    const shares = Array.from({ length: 70 }, (_, i) => [`ws_flood/srf_flood${i}`, String(MIB / 10)])
    poll(deadLetters, { flow: { acceptedCost: String(7 * MIB), doneCost: '0' }, shares: shares.flat(), prices: [] })
    expect(refuse(queue, ofFlood(800), 1)).toMatchObject({ message: expect.stringContaining('could not be stored') })
    expect(refuse(queue, surface('b'), 1)).toBeUndefined()
  })
})

describe('what a process adds between two polls', () => {
  it('counts until a poll that began later includes it', () => {
    const { queue } = given()
    expect(accept(queue, 'a', 30 * MIB)).toBe(true)
    queue.beginPoll()
    expect(accept(queue, 'a', 10 * MIB)).toBe(true)
    queue.endPoll(counters({ a: 30 * MIB }), 1)
    expect([queue.used, queue.shareOf(surface('a')).outstanding]).toEqual([40 * MIB, 40 * MIB])
    poll(queue, counters({ a: 25 * MIB }, { done: 15 * MIB }))
    expect([queue.used, queue.shareOf(surface('a')).outstanding]).toEqual([25 * MIB, 25 * MIB])
    poll(queue, counters({}, { done: 40 * MIB }))
    expect([queue.used, queue.shareOf(surface('a')).outstanding]).toEqual([0, 0])
  })

  it('counts from the beginning of its commit, and no more when the commit fails', () => {
    const { queue } = given()
    const placed = place(queue, surface('a'), bodyOf(60 * MIB)) as PlacedRequest
    queue.begin(placed)
    expect(refuse(queue, surface('a'), 1)).toBeDefined()
    queue.end(placed, false)
    expect(refuse(queue, surface('a'), 1)).toBeUndefined()
    expect(queue.used).toBe(0)
  })
})

describe('Retry-After', () => {
  const retryAfter = (queue: QueueShares, id: string) => refuse(queue, surface(id), 1)?.retryAfterSeconds

  it('grows with the backlog and falls with the drain rate', () => {
    const delayWith = (heldMib: number, doneMib: number) => {
      const { world, queue } = given()
      poll(queue, counters({ a: (heldMib + 20 * doneMib) * MIB }))
      world.now += 20_000
      poll(queue, counters({ a: heldMib * MIB }, { done: 20 * doneMib * MIB }))
      return retryAfter(queue, 'a')
    }
    // 60 MiB must fall to 0.8 of the free 40 MiB, by 1 MiB a second, while the free part grows by as much.
    expect([60, 70, 80].map(held => delayWith(held, 1))).toEqual([15, 25, 35])
    expect([1, 2, 8].map(done => delayWith(60, done))).toEqual([15, 7, 1])
  })

  it('is a whole number from 1 to 60 with up to half more at random, for any state', () => {
    const state = fc.record({
      held: fc.nat({ max: 300 * MIB }),
      done: fc.nat({ max: 300 * MIB }),
      random: fc.double({ min: 0, max: 0.999, noNaN: true }),
    })
    fc.assert(
      fc.property(state, ({ held, done, random }) => {
        const { world, queue } = given(random)
        poll(queue, counters({ a: held + done }))
        world.now += 250
        poll(queue, counters({ a: held, b: 50 * MIB }, { done }))
        const delay = retryAfter(queue, 'a') ?? 1
        expect(Number.isInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(1)
        expect(delay).toBeLessThanOrEqual(60)
      }),
    )
    const jittered = [0, 0.5, 0.99].map(random => delaysOfStuck(1, 20_000, random).at(-1))
    expect(jittered).toEqual([40, 50, 60])
  })

  /** The delays after each poll of a queue whose workers do nothing. */
  function delaysOfStuck(polls: number, intervalMs: number, random = 0): (number | undefined)[] {
    const { world, queue } = given(random)
    poll(queue, counters({ a: 60 * MIB }))
    return Array.from({ length: polls }, () => {
      world.now += intervalMs
      poll(queue, counters({ a: 60 * MIB }))
      return retryAfter(queue, 'a')
    })
  }

  it('grows to its longest while nothing is finished, and is never over twice the time of the backlog', () => {
    expect(delaysOfStuck(12, 2_000)).toEqual([4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 40, 40])
    const { world, queue } = given()
    poll(queue, counters({}))
    expect(accept(queue, 'a', 60 * MIB)).toBe(true)
    expect(retryAfter(queue, 'a')).toBe(1)
    world.now += 250
    poll(queue, counters({ a: 60 * MIB }))
    expect(retryAfter(queue, 'a')).toBe(1)
  })

  it('is by the rate of a backlog, however long there was little to do before', () => {
    const { world, queue } = given()
    let done = 0
    const pass = (seconds: number, doneMib: number, heldMib: number) => {
      world.now += seconds * 1_000
      done += doneMib * MIB
      poll(queue, counters({ a: heldMib * MIB }, { done }))
    }
    // A minute with little, in which 0.1 MiB a second are finished. Then a backlog, of which 8 MiB a second are.
    for (let i = 0; i < 240; i++) pass(0.25, 0.025, 0.1)
    pass(0.25, 0, 76)
    for (let i = 0; i < 8; i++) pass(0.25, 2, 74 - 2 * i)
    expect(retryAfter(queue, 'a')).toBe(1)
    // The rate follows when fewer workers are left, by half in five seconds.
    for (let i = 0; i < 40; i++) pass(0.5, 0.2, 60)
    expect(retryAfter(queue, 'a')).toBeGreaterThan(10)
  })
})

describe('a request takes the bulk lane', () => {
  const laneOf = (queue: QueueShares, id: string, request: PricedRequest) =>
    (place(queue, surface(id), request) as PlacedRequest).lane

  it('when its surface has more than EXPRESS_COST, until that is done', () => {
    const { queue } = given()
    expect(laneOf(queue, 'a', bodyOf(10))).toBe('express')
    poll(queue, counters({ a: EXPRESS_COST + 1 }))
    expect([laneOf(queue, 'a', bodyOf(10)), laneOf(queue, 'b', bodyOf(10))]).toEqual(['bulk', 'express'])
    poll(queue, counters({ a: EXPRESS_COST / 2 }))
    expect(laneOf(queue, 'a', bodyOf(10))).toBe('bulk')
    poll(queue, counters({ a: EXPRESS_COST / 5 }))
    expect(laneOf(queue, 'a', bodyOf(10))).toBe('express')
  })

  it('when the express requests of its workspace have more than twice EXPRESS_COST, whichever surfaces they come from', () => {
    const { queue } = given()
    const ofWorkspace = (i: number): RequestSurface => ({ workspaceId: 'ws_a', surfaceId: `srf_${i}` })
    const lanes = []
    for (let i = 0; i < 40; i++) {
      const placed = place(queue, ofWorkspace(i), bodyOf(MIB)) as PlacedRequest
      queue.begin(placed)
      queue.end(placed, true)
      lanes.push(placed.lane)
    }
    expect(lanes).toEqual([...Array(33).fill('express'), ...Array(7).fill('bulk')])
    expect(laneOf(queue, 'b', bodyOf(10))).toBe('express')
    const costs = Array.from({ length: 40 }, (_, i) => [`ws_a/srf_${i}`, String(MIB)])
    poll(queue, { flow: { acceptedCost: String(40 * MIB), doneCost: '0' }, shares: costs.flat(), prices: [] })
    expect((place(queue, ofWorkspace(50), bodyOf(10)) as PlacedRequest).lane).toBe('bulk')
    poll(queue, counters({}, { done: 40 * MIB }))
    expect((place(queue, ofWorkspace(50), bodyOf(10)) as PlacedRequest).lane).toBe('express')
  })

  it('not because another surface of its workspace is in the bulk lane', () => {
    const { queue } = given()
    poll(queue, counters({ a: 40 * MIB }))
    const sibling = { workspaceId: 'ws_a', surfaceId: 'srf_other' }
    expect((place(queue, sibling, bodyOf(10)) as PlacedRequest).lane).toBe('express')
  })

  it('when it is costly itself', () => {
    const { queue } = given()
    expect(laneOf(queue, 'a', bodyOf(EXPRESS_COST + 1))).toBe('bulk')
  })

  it('when its body states no decoded size and its surface is new', () => {
    const { world, queue } = given()
    const deflate: PricedRequest = { ...bodyOf(100), contentEncoding: 'deflate' }
    expect(laneOf(queue, 'a', deflate)).toBe('bulk')
    world.now += 30_000
    expect([laneOf(queue, 'a', deflate), laneOf(queue, 'b', deflate)]).toEqual(['express', 'bulk'])
  })
})

it('puts surfaces with less work first in the bulk lane, and later jobs behind older ones', () => {
  const { world, queue } = given()
  poll(queue, counters({ a: 60 * MIB }))
  world.now += 1_000
  poll(queue, counters({ a: 50 * MIB }, { done: 10 * MIB }))
  const first = [0, 20 * MIB, 50 * MIB].map(held => queue.bulkPriority(held))
  expect(first).toEqual([...first].sort((a, b) => a - b))
  expect(new Set(first).size).toBe(3)
  const heavy = queue.bulkPriority(90 * MIB)
  world.now += 301_000
  expect(queue.bulkPriority(0)).toBeGreaterThan(heavy)
  world.now = Number.MAX_SAFE_INTEGER
  expect(queue.bulkPriority(1)).toBeLessThanOrEqual(2_097_151)
})

it('puts a workspace that spreads its work over many surfaces behind one with less work', () => {
  const { world, queue } = given()
  const surfaces = Array.from(
    { length: 10 },
    (_, i): RequestSurface => ({ workspaceId: 'ws_a', surfaceId: `srf_${i}` }),
  )
  const shares = ['ws_b/srf_b', String(10 * MIB), ...surfaces.flatMap(s => [`ws_a/${s.surfaceId}`, String(5 * MIB)])]
  poll(queue, { flow: { acceptedCost: String(60 * MIB), doneCost: '0' }, shares, prices: [] })
  world.now += 1_000
  poll(queue, { flow: { acceptedCost: String(61 * MIB), doneCost: String(MIB) }, shares, prices: [] })
  const priorityOf = (owner: RequestSurface) => queue.bulkPriority(queue.shareOf(owner).backlog)
  const other = priorityOf(surface('b'))
  for (const own of surfaces) expect(priorityOf(own)).toBeGreaterThan(other)
})
