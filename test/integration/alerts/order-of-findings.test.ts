import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { OrderOfFindings } from '../../../alerts/calling/order-of-findings.ts'
import { EXAMPLE_EVENTS } from '../../../schemas/http/alerts/example-events.ts'
import { HOUR_MS } from '../../../schemas/units.ts'
import { sharedServices } from '../../support/services/shared-services.ts'

const NOW = Date.parse('2026-11-21T12:00:00Z')
const delivery = (id: string, receiverId = 'rcv_1') => ({
  ...{ id, receiverId },
  events: [EXAMPLE_EVENTS['finding.created']] as [(typeof EXAMPLE_EVENTS)['finding.created']],
})
const [first, second, third, other] = [delivery('z'), delivery('b'), delivery('a'), delivery('c', 'rcv_2')]

let redis: Redis
let order: OrderOfFindings

beforeAll(() => {
  redis = new Redis(`${sharedServices().redisUrl}/14`)
})
afterAll(() => redis?.disconnect())
beforeEach(async () => {
  await redis.flushdb()
  order = new OrderOfFindings(redis)
})

it('sends the events of a finding to a receiver in the order in which they were queued', async () => {
  await order.join([first, second, other], NOW)
  // Queued again after a crash.
  await order.join([second, third], NOW + 1)
  const firsts = async () => {
    const all = [first, second, third, other]
    const may = await Promise.all(all.map(each => order.isFirst(each, NOW + 2)))
    return all.filter((_, i) => may[i]).map(({ id }) => id)
  }
  expect(await firsts()).toEqual(['z', 'c'])
  await order.leave(first)
  expect(await firsts()).toEqual(['z', 'b', 'c'])
  await order.leave(second)
  expect(await firsts()).toEqual(['z', 'b', 'a', 'c'])
})

it('lets later events pass one that was not delivered for an hour, which may still be sent', async () => {
  await order.join([first], NOW)
  await order.join([second], NOW + HOUR_MS / 2)
  expect(await order.isFirst(second, NOW + HOUR_MS - 1)).toBe(false)
  expect(await order.isFirst(second, NOW + HOUR_MS + 1)).toBe(true)
  expect(await order.isFirst(first, NOW + HOUR_MS + 1)).toBe(true)
})

it('has no order of messages about several events', async () => {
  const [event] = first.events
  const message = (id: string) => ({ ...delivery(id), events: [event, event] as [typeof event, typeof event] })
  await order.join([message('x'), message('y')], NOW)
  expect(await order.isFirst(message('y'), NOW)).toBe(true)
})

it('sends the end of a condition after its begin, and waits for no other condition', async () => {
  const of = (id: string, type: 'service.errors' | 'service.latency') => ({
    ...{ id, receiverId: 'rcv_1' },
    events: [EXAMPLE_EVENTS[type]] as [(typeof EXAMPLE_EVENTS)[typeof type]],
  })
  const [begin, end, slow] = [of('b', 'service.errors'), of('a', 'service.errors'), of('c', 'service.latency')]
  await order.join([begin, end, slow], NOW)
  const may = () => Promise.all([begin, end, slow].map(each => order.isFirst(each, NOW)))
  expect(await may()).toEqual([true, false, true])
  await order.leave(begin)
  expect(await may()).toEqual([true, true, true])
})
