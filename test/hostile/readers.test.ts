import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { encodeReplayMetadata } from '../support/clients/encode-replay-metadata.ts'
import { ATTACK_MS, keepAttacking } from '../support/hostile/attacker.ts'
import { type AttackReport, type SmallService, startSmallService } from '../support/hostile/small-service.ts'
import { until } from '../support/until.ts'

const MIB = 1024 * 1024

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

/**
 * Expects that no process ended and that the other workspace was refused nothing. The other surface of the attacker's
 * workspace has one share with the attacker, whose token reads all surfaces.
 */
function expectOtherWorkspaceServed({ victims, containers }: AttackReport): void {
  const ended = containers.filter(container => container.ended !== undefined).map(({ name, ended: why }) => [name, why])
  expect(Object.fromEntries(ended)).toEqual({})
  const [, other] = victims
  expect(other).toMatchObject({ refused: {}, miscounted: {} })
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
  const sessionId = randomBytes(8).toString('hex')
  const line = (timestamp: number, size: number) => `{"type":2,"data":"${'x'.repeat(size)}","timestamp":${timestamp}}\n`
  const windows = 8
  for (let window = 0; window < windows; window++) {
    const now = Date.now()
    const body = gzipSync(Array.from({ length: 6 }, (_, i) => line(now + i, 15 * MIB)).join(''))
    const metadata = { windowId: `w${window}`, segmentId: 0, firstTs: now, lastTs: now + 6 }
    const status = await service.attacker.post(`/v3/replay/upload/${sessionId}`, body, {
      'content-encoding': 'gzip',
      'x-replay-metadata': encodeReplayMetadata(metadata),
    })
    expect(status).toBe(200)
  }
  const counted = `SELECT count() AS n FROM replay_chunks WHERE session_id = '${sessionId}'`
  await until(
    'the chunks to be stored',
    async () => {
      const rows = await (await service.clickhouse.query({ query: counted, format: 'JSONEachRow' })).json<{
        n: string
      }>()
      return Number(rows[0]?.n) === windows
    },
    { deadlineMs: 60_000 },
  )
  const report = await service.during(async () => {
    const sockets = Array.from({ length: 64 }, () => send(`/v3/sessions/${sessionId}/replay/events`))
    // Each is read a little every second, which keeps the connection.
    const reading = setInterval(() => {
      for (const socket of sockets) socket.read(4 * 1024)
    }, 1_000)
    for (const socket of sockets) socket.pause()
    await delay(ATTACK_MS)
    clearInterval(reading)
    for (const socket of sockets) socket.destroy()
  })
  expectOtherWorkspaceServed(report)
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
