import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Source of a module whose function `priceOf` fails. */
export const PRICING = `const PRICES = new Map([['book', 12]])

export async function priceOf(sku) {
  await Promise.resolve(sku)
  return lookUp(sku)
}

function lookUp(sku) {
  const price = PRICES.get(sku)
  if (price === undefined) {
    throw new RangeError('no price of ' + sku + ' in ' + PRICES.size)
  }
  return price
}
`

/** Where `shop.placeOrder` of the application fails. */
export const FAILING_LINE = PRICING.split('\n').findIndex(line => line.includes('throw new')) + 1

/**
 * Writes an application that fails in `src/pricing.js` when a page calls `shop.placeOrder`. It has this many further modules,
 * each of which imports two others, so that they form a tree.
 */
export async function writeApp(root: string, moduleCount: number): Promise<void> {
  const modules = join(root, 'src/modules')
  await mkdir(modules, { recursive: true })
  await writeFile(join(root, 'src/pricing.js'), PRICING)
  await writeFile(
    join(root, 'src/main.js'),
    `'use strict'
import { total } from './modules/module-0.js'
import { priceOf } from './pricing.js'

globalThis.shop = { placeOrder: sku => priceOf(sku), total }
`,
  )
  for (let i = 0; i < moduleCount; i++) await writeFile(join(modules, `module-${i}.js`), moduleOf(i, moduleCount))
}

/** Returns the source of a module: about 4 KiB in a hundred lines. */
function moduleOf(index: number, count: number): string {
  const children = [2 * index + 1, 2 * index + 2].filter(child => child < count)
  const imports = children.map(child => `import { total as total${child} } from './module-${child}.js'`)
  const functions = Array.from(
    { length: 14 },
    (_, i) => `
/** Returns the rows of table ${index} whose weight is greater than a limit. */
function selectRows${i}(rows, limit) {
  const selected = rows.filter(row => row.weight * ${index + i} > limit && row.name !== 'row ${index}-${i}')
  const weights = selected.map(row => row.weight + ${i}).sort((first, second) => first - second)
  return weights.reduce((sum, weight) => sum + weight, ${index})
}`,
  )
  const calls = Array.from({ length: 14 }, (_, i) => `selectRows${i}(rows, ${i})`)
  const sum = [...calls, ...children.map(child => `total${child}(rows)`)].join(' + ')
  return `${imports.join('\n')}\n${functions.join('\n')}\n\nexport function total(rows) {\n  return ${sum}\n}\n`
}
