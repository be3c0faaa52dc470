import { expect, it } from 'vitest'
import { z } from 'zod'
import { clickhouseSettings, parseConfig, processSettings } from './config.ts'

it('keeps the admin port on this machine when the clients come from other machines', () => {
  const config = parseConfig(z.object(processSettings), { BIND_HOST: '0.0.0.0' })
  expect(config.ADMIN_BIND_HOST).toBe('127.0.0.1')
})

it('refuses settings of queries in the URL of ClickHouse, of which reads would have none, and does not repeat them', () => {
  const parse = (url: string) => parseConfig(z.object(clickhouseSettings), { CLICKHOUSE_URL: url })
  expect(parse('https://user:secret@clickhouse:8443').CLICKHOUSE_URL).toBe('https://user:secret@clickhouse:8443')
  const fault = () => parse('http://user:secret@clickhouse:8123/?clickhouse_setting_max_threads=4')
  expect(fault).toThrow(/CLICKHOUSE_URL: must have no query/)
  expect(fault).not.toThrow(/secret|max_threads/)
})
