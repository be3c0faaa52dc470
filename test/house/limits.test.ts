import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import * as limits from '../../schemas/http/limits.ts'
import { ROOT } from './prose.ts'
import { LIMITS_PAGE, withLimits } from './write-limits.ts'

const page = readFileSync(ROOT + LIMITS_PAGE, 'utf8')

it('the table of limits is that of schemas/http/limits.ts: else run npm run generate:docs', () => {
  expect(page).toBe(withLimits(page))
})

it('the table has every limit', () => {
  const rows = page.match(/^\| .* \| \d+ [KM]iB +\|$/gm) ?? []
  const sizes = Object.values(limits).filter(value => typeof value === 'number')
  expect(rows.map(row => /\d+ [KM]iB/.exec(row)?.[0]).sort()).toEqual(sizes.map(limits.formatBytes).sort())
})
