import { expect, it } from 'vitest'
import { z } from 'zod'
import { clickhouseSettings, httpSettings, parseConfig, processSettings, redisSettings } from './config.ts'

it('keeps the admin port on this machine when the clients come from other machines', () => {
  const config = parseConfig(z.object(processSettings), { BIND_HOST: '0.0.0.0' })
  expect(config.ADMIN_BIND_HOST).toBe('127.0.0.1')
})

it('refuses settings of queries in the URL of ClickHouse, of which reads would have none, and does not repeat them', () => {
  const parse = (url: string) => parseConfig(z.object(clickhouseSettings), { CLICKHOUSE_URL: url })
  expect(parse('https://user:secret@clickhouse:8443').CLICKHOUSE_URL).toBe('https://user:secret@clickhouse:8443')
  const fault = () => parse('http://user:secret@clickhouse:8123/?clickhouse_setting_max_threads=4')
  expect(fault).toThrow(/CLICKHOUSE_URL must have no query/)
  expect(fault).not.toThrow(/secret|max_threads/)
})

const faultsOf = (env: Record<string, string>) => {
  try {
    return parseConfig(z.object({ ...processSettings, ...httpSettings, ...clickhouseSettings, ...redisSettings }), {
      DIRECTORY_REDIS_URL: 'redis://directory:6379',
      ...env,
    })
  } catch (error) {
    return String(error)
  }
}

it.each([
  [{ MAX_CONNECTIONS: 'abc' }, 'MAX_CONNECTIONS must be a whole number from 1 to 1000000, and is "abc"'],
  [{ MAX_CONNECTIONS: '0' }, 'MAX_CONNECTIONS must be a whole number from 1 to 1000000, and is "0"'],
  [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, and is "loud"'],
  [{ PUBLIC_URL: 'shop' }, 'PUBLIC_URL must be an address that begins with http:// or https://'],
  [
    { CLICKHOUSE_DATABASE: 'My-Data' },
    'CLICKHOUSE_DATABASE must have only a to z, 0 to 9 and _, and not begin with a digit',
  ],
  [{ REDIS_URL: 'http://x' }, 'REDIS_URL must be redis://, redis+sentinel:// or redis+cluster://, or each with rediss'],
  [
    { REDIS_URL: 'rediss://:secret@a?ca=/absent.pem' },
    'REDIS_URL: the file of ca in the address of Redis cannot be read: /absent.pem',
  ],
  [
    { REDIS_URL: 'rediss+cluster://:secret@a?ca=/absent.pem' },
    'REDIS_URL: the file of ca in the address of Redis cannot be read: /absent.pem',
  ],
  [
    { DIRECTORY_REDIS_URL: '' },
    'DIRECTORY_REDIS_URL is required: set the Redis of the directory and the releases, or the value of REDIS_URL if they share its memory',
  ],
])('states in one sentence the fault of %j', (env, sentence) => {
  expect(faultsOf(env as Record<string, string>)).toBe(`ConfigError: the environment is invalid: ${sentence}`)
})

it('names all faults on one line, and shows no value that may be a secret', () => {
  const text = faultsOf({ REDIS_URL: 'hidden', CLICKHOUSE_URL: 'hidden', PUBLIC_URL: 'hidden', DRAIN_DELAY_MS: '-1' })
  expect(String(text).split('; ')).toHaveLength(4)
  expect(text).toContain('DRAIN_DELAY_MS must be a whole number from 0 to 600000, and is "-1"')
  expect(text).not.toMatch(/hidden|\n/)
})
