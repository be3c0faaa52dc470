import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { parseConfig, redisSettings } from '../config.ts'
import { readRedisAddress } from './redis-address.ts'

const file = fileURLToPath(import.meta.url)
const parse = (url: string) =>
  parseConfig(z.object(redisSettings), { REDIS_URL: url, DIRECTORY_REDIS_URL: 'redis://directory:6379' }).REDIS_URL

it('reads the files that the address names, and leaves its other parts', () => {
  const { url, tls } = readRedisAddress(
    `rediss://user:secret@queues.example:6379/3?ca=${file}&cert=${file}&family=6&key=${file}`,
  )
  expect(url).toBe('rediss://user:secret@queues.example:6379/3?family=6')
  expect(tls).toMatchObject({ servername: 'queues.example' })
  for (const name of ['ca', 'cert', 'key'] as const) expect(tls?.[name]).toContain('import { expect, it }')
})

it('verifies the certificate of a server that is named by its IP, without files too', () => {
  expect(readRedisAddress('rediss://10.0.0.7:6379')).toEqual({ url: 'rediss://10.0.0.7:6379', tls: {} })
  expect(readRedisAddress('rediss://[::1]:6379').tls).toEqual({})
})

it('leaves a plain address as it is', () => {
  expect(readRedisAddress('redis://queues:6379/1')).toEqual({ url: 'redis://queues:6379/1' })
})

it('refuses files of a plain address, and a certificate without its key, and does not repeat the address', () => {
  for (const url of ['redis://user:secret@queues:6379?ca=/ca.pem', 'rediss://user:secret@queues:6379?cert=/cert.pem']) {
    expect(() => parse(url)).toThrow(/REDIS_URL: .*(rediss:|together)/)
    expect(() => parse(url)).not.toThrow(/secret/)
  }
})

it('names a file that cannot be read', () => {
  expect(() => readRedisAddress('rediss://user:secret@queues:6379?ca=/absent/ca.pem')).toThrow(
    'the file of ca in the address of Redis cannot be read: /absent/ca.pem',
  )
})
