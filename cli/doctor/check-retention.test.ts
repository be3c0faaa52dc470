import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { compareRules } from './check-retention.ts'

const RULES = [
  { prefix: 'replays/', days: 31 },
  { prefix: 'dead-letters/', days: 31 },
]
const NEVER = (prefix: string, days: number) => ({
  result: 'fault',
  text: `the bucket deletes ${prefix} after ${days} days, which is needed at any age: deploy/object-store/README.md`,
})

it('accepts the rules that the product has, and a store that does not show them', () => {
  const file = new URL('../../deploy/object-store/lifecycle.json', import.meta.url)
  const { Rules } = JSON.parse(readFileSync(file, 'utf8')) as {
    Rules: { Filter: { Prefix: string }; Expiration?: { Days: number } }[]
  }
  const rules = Rules.flatMap(({ Filter, Expiration }) =>
    Expiration === undefined ? [] : [{ prefix: Filter.Prefix, days: Expiration.Days }],
  )
  expect(compareRules(rules, 30)).toEqual([])
  expect(compareRules(undefined, 30)).toEqual([])
})

it('warns of objects that stay longer than their rows', () => {
  const text = (prefix: string) =>
    `the bucket has no rule that deletes ${prefix} after 31 days: deploy/object-store/README.md`
  expect(compareRules([], 30)).toEqual([
    { result: 'warning', text: text('replays/') },
    { result: 'warning', text: text('dead-letters/') },
  ])
  expect(compareRules(RULES, 7)).toMatchObject([{ result: 'warning' }, { result: 'warning' }])
})

it('has a fault for objects that are deleted while rows name them', () => {
  expect(compareRules([...RULES, { prefix: 'replays/', days: 7 }], 30)).toEqual([
    {
      result: 'fault',
      text: 'the bucket deletes replays/ after 7 days instead of 31 (RETENTION_DAYS + 1): deploy/object-store/README.md',
    },
  ])
})

it('has a fault for a rule that deletes objects which never expire', () => {
  expect(compareRules([...RULES, { prefix: '', days: 365 }], 30)).toEqual(
    ['source-maps/', 'releases/', 'directory-backups/', 'installation.json'].map(prefix => NEVER(prefix, 365)),
  )
})
