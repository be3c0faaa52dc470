import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { readAllCode, unusedExports } from './code.ts'
import { ROOT } from './prose.ts'

/** Exports that nothing imported when the rule came, by name. The list only shrinks. */
const LIST = 'test/house/unused-exports.txt'

it('every export is imported by another file', () => {
  const accepted = new Set(readFileSync(ROOT + LIST, 'utf8').split('\n'))
  const unused = unusedExports(readAllCode()).filter(({ name }) => !accepted.has(name))
  expect(unused.map(({ file, name }) => `${file} ${name}`)).toEqual([])
})
