import { expect, it } from 'vitest'
import { leastCpuMs } from '../../test/support/least-cpu-ms.ts'
import { fromFirstFrame, topFrames } from './stack-frames.ts'

const STACKS: [string, string, string[]][] = [
  [
    'V8',
    `TypeError: at home nothing works (really:1:2)
    at OrderService.load [as find] (/srv/app/orders.js:12:34)
    at new Order (file:///srv/app/order.mjs:5:9)
    at async Promise.all (index 0)
    at async /srv/app/server.js:99:1
    at eval (eval at build (/srv/app/eval.js:1:2), <anonymous>:3:4)
    at never (reached.js:1:1)`,
    [
      'OrderService.load /srv/app/orders.js',
      'new Order /srv/app/order.mjs',
      'Promise.all index 0',
      ' /srv/app/server.js',
      'eval eval at build (/srv/app/eval.js:1:2), <anonymous>',
    ],
  ],
  [
    'Firefox and Safari',
    `load@https://shop.test/assets/app-DkJ2x9aB.js:1:2345
@https://shop.test/assets/app-DkJ2x9aB.js:7:1
async*run/<@https://shop.test/main.js:3:4
forEach@[native code]
global code@https://shop.test/:10:3`,
    ['load /assets/app-*.js', ' /assets/app-*.js', 'async*run/< /main.js', 'forEach [native code]', 'global code /'],
  ],
  [
    'Java',
    `java.lang.IllegalStateException: order 7
\tat com.shop.Orders.load(Orders.java:120)
\tat com.shop.Orders$$Lambda$14/0x0000000800c03000.run(Unknown Source)
\tat jdk.proxy2/jdk.proxy2.$Proxy33.load(Unknown Source)
\tat java.base/java.lang.Thread.run(Thread.java:833)
Caused by: java.io.IOException: at rest
\t... 12 more`,
    [
      'com.shop.Orders.load Orders.java',
      'com.shop.Orders$$Lambda.run Unknown Source',
      'jdk.proxy2/jdk.proxy2.$Proxy.load Unknown Source',
      'java.base/java.lang.Thread.run Thread.java',
    ],
  ],
  [
    '.NET',
    `System.InvalidOperationException: no order
   at Shop.Orders.Load(Int32 id) in C:\\src\\Shop\\Orders.cs:line 42
   at Shop.Program.Main(String[] args)`,
    ['Shop.Orders.Load C:/src/Shop/Orders.cs', 'Shop.Program.Main String[] args'],
  ],
  [
    'Python',
    `Traceback (most recent call last):
  File "/srv/app/server.py", line 10, in handle
    return load(order)
  File "/srv/app/orders.py", line 99, in load
    raise KeyError(order)
KeyError: 'order@home:1'`,
    ['load /srv/app/orders.py', 'handle /srv/app/server.py'],
  ],
  [
    'Go',
    `goroutine 1 [running]:
main.load(0xc000012345, 0x7)
\t/srv/app/orders.go:12 +0x1d
main.main()
\t/srv/app/main.go:5 +0x25`,
    [' /srv/app/orders.go', ' /srv/app/main.go'],
  ],
  ['no stack at all', 'Error: something at 10:30 went wrong', []],
]

it.each(STACKS)('reads the top frames of %s', (_, stack, frames) => {
  expect(topFrames(stack, 5)).toEqual(frames)
  expect(topFrames(fromFirstFrame(stack), 5)).toEqual(frames)
})

it('leaves out the lines before the first frame, which may be the first line, and nothing if there is none', () => {
  const frames = '    at load (/srv/app/orders.js:12:34)\n    at run@home'
  expect(fromFirstFrame(`Error: order 17\nof user 8\n${frames}`)).toBe(frames)
  expect(fromFirstFrame(`at 17\n${frames}`)).toBe(`at 17\n${frames}`)
  expect(fromFirstFrame('Error: order 17\nof user 8')).toBe('Error: order 17\nof user 8')
  const long = `${'of user 8\n'.repeat(300)}${frames}`
  expect(fromFirstFrame(long)).toBe(long)
})

it.each([
  ['lines', '\n'.repeat(32_768)],
  ['frames without an end', `${'    at ('.repeat(5_000)}`],
  ['parentheses', `    at ${'('.repeat(16_000)}${')'.repeat(16_000)}`],
  ['positions', `    at ${':1'.repeat(16_000)}`],
  ['at signs', '@'.repeat(32_000)],
  ['Python without an end', 'File "'.repeat(5_000)],
  ['Python frames', 'File "a", line 1, in b\n'.repeat(1_400)],
  ['hashes', `    at f (${'a1b2c3d4-'.repeat(3_500)}.js:1:1)`],
  ['lambdas', `    at ${'$$Lambda'.repeat(4_000)}`],
])('is fast for a text full of %s', (_, stack) => {
  expect(leastCpuMs(() => topFrames(stack, 5), 100)).toBeLessThan(100)
})
