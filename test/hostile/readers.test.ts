import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { KIB, MIB } from '../../schemas/units.ts'
import { encodeReplayMetadata } from '../support/clients/encode-replay-metadata.ts'
import { type Attacker, keepAttacking } from '../support/hostile/attacker.ts'
import {
  type AttackReport,
  expectServed,
  type SmallService,
  startSmallService,
} from '../support/hostile/small-service.ts'
import { until } from '../support/until.ts'

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

/**
 * Expects that no process ended and that the other workspace was refused nothing. The other surface of the attacker's
 * workspace has one share with the attacker, whose token reads all surfaces.
 */
function expectOtherWorkspaceServed(report: AttackReport): void {
  expectServed({ ...report, victims: report.victims.slice(1) })
}

/** Sends a read on a socket of its own. */
function send(path: string): Socket {
  const { apiUrl, tenant } = service.attacker
  const socket = connect(Number(new URL(apiUrl).port), '127.0.0.1')
  socket.on('error', () => {})
  socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${tenant.sessionToken}\r\n\r\n`)
  return socket
}

it('many replays of long events that are read slowly harm no other workspace', async () => {
  const attacked = await storeReplay(service.attacker, 8, 15 * MIB)
  const others = await storeReplay(service.others[1], 1, KIB)
  const statuses = new Set<number | string>()
  const report = await service.during(async () => {
    const sockets = Array.from({ length: 64 }, () => send(`/v3/sessions/${attacked}/replay/events`))
    // Each is read a little every second, which keeps the connection.
    const reading = setInterval(() => {
      for (const socket of sockets) socket.read(4 * KIB)
    }, 1_000)
    for (const socket of sockets) socket.pause()
    await keepAttacking(1, async () => {
      statuses.add(await service.others[1].call('GET', `/v3/sessions/${others}/replay/events`))
      await delay(100)
    })
    clearInterval(reading)
    for (const socket of sockets) socket.destroy()
  })
  expectOtherWorkspaceServed(report)
  expect([...statuses]).toEqual([200])
})

it('reads whose client leaves at once harm no other workspace', async () => {
  const report = await service.during(() =>
    keepAttacking(64, async i => {
      const socket = send(`/v3/findings?q=${i}`)
      await delay(20)
      socket.destroy()
    }),
  )
  expectOtherWorkspaceServed(report)
})

it('as many reads as are answered harm no other workspace', async () => {
  const paths = [
    '/v3/findings?q=e',
    '/v3/findings',
    '/v3/sessions/none',
    '/v3/surfaces?limit=100',
    '/v3/releases?limit=100',
  ]
  const report = await service.during(() =>
    keepAttacking(128, i => service.attacker.call('GET', paths[i % paths.length] as string)),
  )
  expectOtherWorkspaceServed(report)
})

/** Uploads a replay with six events of this size in each window. Returns the session when it is stored. */
async function storeReplay(sender: Attacker, windows: number, eventBytes: number): Promise<string> {
  const sessionId = randomBytes(8).toString('hex')
  for (let window = 0; window < windows; window++) {
    const now = Date.now()
    const lines = Array.from(
      { length: 6 },
      (_, i) => `{"type":2,"data":"${'x'.repeat(eventBytes)}","timestamp":${now + i}}\n`,
    )
    const metadata = { windowId: `w${window}`, segmentId: 0, firstTs: now, lastTs: now + 6 }
    const status = await sender.post(`/v3/replay/upload/${sessionId}`, gzipSync(lines.join('')), {
      'content-encoding': 'gzip',
      'x-replay-metadata': encodeReplayMetadata(metadata),
    })
    expect(status).toBe(200)
  }
  const query = `SELECT toUInt32(count()) AS n FROM replay_chunks WHERE session_id = '${sessionId}'`
  await until(
    'the chunks to be stored',
    async () => {
      const result = await service.clickhouse.query({ query, format: 'JSONEachRow' })
      return (await result.json<{ n: number }>())[0]?.n === windows
    },
    { deadlineMs: 60_000 },
  )
  return sessionId
}
