import { connect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, it } from 'vitest'
import { KIB, MIB } from '../../schemas/units.ts'
import { ATTACK_MS } from '../support/hostile/attacker.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

it('thousands of bodies that arrive a byte at a time leave others the memory for bodies', async () => {
  expectUnharmed(
    await service.during(() =>
      hold(4_096, headOf(100_000), async socket => {
        socket.write('\n')
        await delay(1_000)
      }),
    ),
  )
})

it('large bodies that never end leave others the memory for bodies', async () => {
  // Smaller ones take what the larger ones leave.
  const sizes = [16 * MIB, 4 * MIB, MIB, 128 * KIB]
  const most = Buffer.alloc(16 * MIB - 1)
  expectUnharmed(
    await service.during(async () => {
      await Promise.all(
        sizes.map(size =>
          hold(32, headOf(size), async (socket, round) => {
            if (round === 0) socket.write(most.subarray(0, size - 1))
            await delay(1_000)
          }),
        ),
      )
    }),
  )
})

function headOf(contentLength: number): string {
  return (
    'POST /drain/v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n' +
    `x-service-public-key: ${service.attacker.tenant.publicKey}\r\ncontent-length: ${contentLength}\r\n\r\n`
  )
}

/** Keeps connections open that have sent a head, calls `drip` for each again and again, and opens those that close again. */
async function hold(
  connections: number,
  head: string,
  drip: (socket: Socket, round: number) => Promise<void>,
): Promise<void> {
  const until = Date.now() + ATTACK_MS
  await Promise.all(
    Array.from({ length: connections }, async () => {
      while (Date.now() < until) {
        const socket = connect(service.attacker.edgePort, '127.0.0.1')
        socket.on('error', () => {})
        socket.resume()
        socket.write(head)
        for (let round = 0; Date.now() < until && !socket.closed && !socket.readableEnded; round++) {
          await drip(socket, round)
        }
        socket.destroy()
      }
    }),
  )
}
