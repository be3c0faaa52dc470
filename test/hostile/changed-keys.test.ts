import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, it } from 'vitest'
import { generateKey } from '../../shared/ids/credentials.ts'
import { ATTACK_MS, keepAttacking, sendAll } from '../support/hostile/attacker.ts'
import { oneLog } from '../support/hostile/bodies.ts'
import { expectUnharmed, type SmallService, startSmallService } from '../support/hostile/small-service.ts'

let service: SmallService
beforeAll(async () => {
  service = await startSmallService()
})
afterAll(() => service?.stop())

it('making, revoking and deleting thousands of keys stops no other request', async () => {
  const { attacker } = service
  const headers = { authorization: `Bearer ${attacker.tenant.sessionToken}`, 'content-type': 'application/json' }
  const post = async (path: string, body: unknown) => {
    const response = await fetch(attacker.apiUrl + path, { method: 'POST', headers, body: JSON.stringify(body) })
    return (await response.json()) as { surface?: { id: string }; key?: { id: string } }
  }
  expectUnharmed(
    await service.during(async () => {
      const until = Date.now() + ATTACK_MS
      while (Date.now() < until) {
        const { surface } = await post('/v3/surfaces', { name: randomBytes(8).toString('hex') })
        if (surface === undefined) break
        await sendAll(1_000, 16, async i => {
          if (Date.now() > until) return
          const { key } = await post(`/v3/surfaces/${surface.id}/keys`, { kind: 'public' })
          if (key !== undefined && i % 2 === 0)
            await attacker.call('DELETE', `/v3/surfaces/${surface.id}/keys/${key.id}`)
        })
        await attacker.call('DELETE', `/v3/surfaces/${surface.id}`)
      }
    }),
  )
})

it('made-up keys with a right checksum take no other client the lookups of keys', async () => {
  const body = oneLog('attacker')
  const { attacker } = service
  expectUnharmed(
    await service.during(() =>
      keepAttacking(64, () =>
        attacker.post('/drain/v1/logs', body, {
          'content-type': 'application/x-protobuf',
          'x-service-public-key': generateKey('public'),
        }),
      ),
    ),
  )
})
