import { createSocket } from 'node:dgram'
import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { lookUpHost } from './look-up-host.ts'
import { PUBLIC_ONLY, parseAllowedReceivers } from './receiver-address.ts'

it('finds hosts that an operator allows as the system does', async () => {
  const list = parseAllowedReceivers('localhost')
  if (!list.ok) throw new Error(list.fault)
  const found = await lookUpHost(list.allowed, 'localhost')
  expect(found.map(({ address }) => address)).toContainEqual(expect.stringMatching(/^(127\.0\.0\.1|::1)$/))
})

it('takes no thread of files while a name server is silent', async () => {
  const silent = createSocket('udp4')
  await once(silent.bind(0, '127.0.0.1'), 'listening')
  const resolver = new Resolver()
  resolver.setServers([`127.0.0.1:${silent.address().port}`])
  const lookups = Array.from({ length: 8 }, (_, i) => lookUpHost(PUBLIC_ONLY, `${i}.example.com`, resolver))
  const ended = Promise.allSettled(lookups)
  await once(silent, 'message')
  expect(await readFile(import.meta.filename, 'utf8')).toContain('while a name server is silent')
  resolver.cancel()
  const rejected = { status: 'rejected', reason: expect.objectContaining({ code: 'ECANCELLED' }) }
  expect(await ended).toEqual(lookups.map(() => rejected))
  silent.close()
})
