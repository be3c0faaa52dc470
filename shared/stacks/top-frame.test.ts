import { expect, it } from 'vitest'
import { readStack } from './read-stack.ts'
import { readTopFrame, topFrameOf } from './top-frame.ts'

const topOf = (stack: string) => readTopFrame(topFrameOf(readStack(stack)))

it.each([
  [
    'the innermost one of the application',
    `TypeError: x
    at Array.map (<anonymous>)
    at join (/srv/app/node_modules/lodash/lodash.js:9:1)
    at charge (/srv/app/src/pay.ts:42:7)
    at handle (/srv/app/src/server.ts:7:1)`,
    { function: 'charge', file: '/srv/app/src/pay.ts', line: 42 },
  ],
  [
    'that of the exception behind it if the first one has none',
    `java.util.concurrent.ExecutionException: java.lang.IllegalStateException: empty
	at java.base/java.util.concurrent.FutureTask.get(FutureTask.java:191)
Caused by: java.lang.IllegalStateException: empty
	at com.shop.Cart.total(Cart.java:12)
	... 1 more`,
    { function: 'com.shop.Cart.total', file: 'Cart.java', line: 12 },
  ],
  [
    'none where only the runtime is known',
    `Error: connect ECONNREFUSED
    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1611:16)`,
    undefined,
  ],
  ['none without a stack', '', undefined],
])('is %s', (_, stack, expected) => {
  expect(topOf(stack)).toEqual(expected)
})

it('has bounded names: the end of a file and the start of a function', () => {
  const found = topOf(`Error: x\n    at ${'f'.repeat(400)} (/${'d'.repeat(500)}/pay.ts:1:2)`)
  expect(found?.function).toBe('f'.repeat(200))
  expect(found?.file).toHaveLength(300)
  expect(found?.file).toMatch(/d\/pay\.ts$/)
})
