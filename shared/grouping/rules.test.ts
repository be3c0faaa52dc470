import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { FindingRule } from '../../schemas/records/finding-rules.ts'
import { readStack } from '../stacks/read-stack.ts'
import { compileRules, filesOf, findingOfRule, NO_RULES, type RuledException, variantAfterRules } from './rules.ts'

const STACK = `TypeError: no cart
    at checkout (/srv/shop/src/checkout/cart.ts:4:9)
    at next (/srv/shop/node_modules/express/lib/router.js:1:1)`

const THROWN: RuledException = {
  ...{ type: 'TypeError', message: 'no cart 17', serviceName: 'shop' },
  files: () => filesOf(readStack(STACK)),
}

function matchedBy(rules: readonly Partial<FindingRule>[], exception = THROWN) {
  const named = rules.map((rule, i) => ({ name: `rule ${i}`, fingerprint: 'f', ...rule }))
  return compileRules({ revision: 1, rules: named }).match(exception)
}

it('is decided by the first rule of which all patterns match', () => {
  const nameOf = (...rules: Partial<FindingRule>[]) => matchedBy(rules).rule?.name
  expect(nameOf({ type: 'TypeError' }, { type: '*' })).toBe('rule 0')
  expect(nameOf({ type: 'RangeError' }, { type: '*' })).toBe('rule 1')
  expect(nameOf({ type: 'TypeError', service: 'cart' })).toBeUndefined()
  expect(nameOf({ type: 'TypeError', service: 'shop', message: 'no cart*', file: '*/checkout/*' })).toBe('rule 0')
  expect(nameOf({ file: '*/express/*' })).toBeUndefined()
  expect(NO_RULES.match(THROWN).rule).toBeUndefined()
})

it('reads the files of the application, of all frames if it has none', () => {
  expect(filesOf(readStack(STACK))).toEqual(['/srv/shop/src/checkout/cart.ts'])
  const ofLibrary = STACK.replace('/srv/shop/src/checkout/cart.ts', '/srv/shop/node_modules/cart/index.js')
  expect(filesOf(readStack(ofLibrary))).toHaveLength(2)
  let reads = 0
  const files = () => {
    reads++
    return []
  }
  matchedBy([{ type: 'TypeError' }], { ...THROWN, files })
  expect(reads).toBe(0)
  matchedBy([{ file: 'a' }, { file: 'b' }], { ...THROWN, files })
  expect(reads).toBe(1)
})

describe('a finding of a rule', () => {
  const owner = { workspaceId: 'ws_1', surfaceId: 'srf_1', serviceName: 'shop', type: 'TypeError' }
  const idOf = (fingerprint: string, change: Partial<typeof owner> = {}) =>
    findingOfRule({ name: 'a', fingerprint }, { ...owner, ...change })

  it('is one for each service, and for each type if the fingerprint has it', () => {
    expect(idOf('db')).toMatch(/^fnd_[a-z2-7]{26}$/)
    expect(idOf('db', { type: 'RangeError' })).toBe(idOf('db'))
    expect(idOf('db {type}', { type: 'RangeError' })).not.toBe(idOf('db {type}'))
    expect(idOf('db {type}')).toBe(idOf('db TypeError'))
    for (const change of [{ workspaceId: 'ws_2' }, { surfaceId: 'srf_2' }, { serviceName: 'cart' }])
      expect(idOf('db', change)).not.toBe(idOf('db'))
  })

  it('does not exist without a fingerprint', () => {
    expect(findingOfRule({ name: 'a', title: 'A' }, owner)).toBeUndefined()
  })
})

it('has one rule for each variant, whatever the messages are', () => {
  const patterns = fc.string({ unit: fc.constantFrom('a', 'b', '*'), minLength: 1, maxLength: 3 })
  const rule = fc.record(
    { type: fc.constantFrom('E', 'F'), message: patterns, file: fc.constantFrom('x', 'y') },
    { requiredKeys: [] },
  )
  const messages = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 3 })
  fc.assert(
    fc.property(
      fc.array(rule, { maxLength: 5 }),
      fc.array(messages, { minLength: 2, maxLength: 6 }),
      (rules, texts) => {
        const byVariant = new Map<string, string>()
        for (const message of texts) {
          // Source maps may tell another file later.
          for (const file of ['x', 'y']) {
            const found = matchedBy(rules, { type: 'E', message, serviceName: '', files: () => [file] })
            const variant = `${variantAfterRules(Buffer.alloc(16), found).toString('hex')} ${file}`
            const name = found.rule?.name ?? 'none'
            expect(byVariant.get(variant) ?? name).toBe(name)
            byVariant.set(variant, name)
          }
        }
      },
    ),
    { numRuns: 1_000 },
  )
})

it('keeps the variant of exceptions whose message no rule compares', () => {
  const variantId = Buffer.alloc(16, 7)
  expect(variantAfterRules(variantId, matchedBy([{ type: 'TypeError' }]))).toEqual(variantId)
  expect(variantAfterRules(variantId, matchedBy([{ type: 'RangeError', message: '*' }]))).toEqual(variantId)
  const after = variantAfterRules(variantId, matchedBy([{ message: '*' }]))
  expect(after).not.toEqual(variantId)
  expect(after.subarray(0, 8)).toEqual(variantId.subarray(0, 8))
})
