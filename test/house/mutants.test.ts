import { expect, it } from 'vitest'
import { MUTANTS } from '../support/chaos/mutants.ts'
import { changedSource } from '../support/chaos/product-tree.ts'

it.each(MUTANTS)('the product can be changed so that $name', async mutant => {
  expect(await changedSource(mutant)).not.toBe('')
})
