import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { apiConfigSchema } from '../api/config.ts'
import { migrateConfigSchema } from '../clickhouse/migrate/config.ts'
import { ingestConfigSchema } from '../ingest/config.ts'
import { workersConfigSchema } from '../workers/config.ts'
import { localSettings } from './local/config.ts'

/** Returns the settings of env.example by name, with their defaults. A commented setting has no default. */
function documented(): Map<string, string | undefined> {
  const text = readFileSync(new URL('env.example', import.meta.url), 'utf8')
  const lines = text.split('\n').filter(line => /^#?[A-Z0-9_]+=/.test(line))
  return new Map(
    lines.map(line => {
      const [name, value] = line.replace('#', '').split(/=(.*)/) as [string, string]
      return [name, line.startsWith('#') ? undefined : value]
    }),
  )
}

it('lists every setting of every process, with a default that at least one process has', () => {
  const defaults = new Map<string, Set<string | undefined>>()
  for (const schema of [ingestConfigSchema, workersConfigSchema, apiConfigSchema, migrateConfigSchema, localSettings]) {
    for (const [name, setting] of Object.entries(schema.shape)) {
      const parsed = z.safeParse(setting as z.ZodType, undefined)
      const value = parsed.success && parsed.data !== undefined && parsed.data !== '' ? String(parsed.data) : undefined
      defaults.set(name, (defaults.get(name) ?? new Set()).add(value))
    }
  }
  const listed = documented()
  expect([...listed.keys()].sort()).toEqual([...defaults.keys()].sort())
  for (const [name, value] of listed) expect([...(defaults.get(name) ?? [])], name).toContain(value)
})
