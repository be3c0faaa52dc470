import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ATTACK_MS, keepAttacking } from '../support/hostile/attacker.ts'
import { expectServed, expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'

const SOCKETS = 300
const REQUESTS = 50

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

it('documents whose reader stays away use no memory of the edge', async () => {
  expectUnharmed(
    await service.during(async () => {
      const sockets = Array.from({ length: SOCKETS }, () => {
        const socket = connect({ port: service.attacker.edgePort, host: '127.0.0.1' })
        socket.on('error', () => {})
        socket.pause()
        // Many requests in a row, of which no response is read.
        socket.write('GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(REQUESTS))
        return socket
      })
      await delay(ATTACK_MS)
      for (const socket of sockets) socket.destroy()
    }),
  )
})

it('made-up cursors and extreme filters cause no internal error', async () => {
  const { attacker } = service
  const cursors = [Number.MAX_SAFE_INTEGER, -1, 1e300].map(asOfMs =>
    Buffer.from(JSON.stringify({ asOfMs, rank: 0, id: '' })).toString('base64url'),
  )
  const queries = [
    ...cursors.map(cursor => `cursor=${cursor}`),
    `q=${'%25'.repeat(300)}`,
    'from=0001-01-01T00:00:00Z&to=9999-12-31T23:59:59Z',
    'limit=2000000000',
  ]
  // One request at a time: the workspace of the attacker has one share of reads, which its other surface uses too.
  expectServed(
    await service.during(() =>
      keepAttacking(1, i => attacker.call('GET', `/v3/findings?${queries[i % queries.length]}`)),
    ),
  )
  for (const status of Object.keys(attacker.outcomes)) expect(['200', '400', '429']).toContain(status)
})
