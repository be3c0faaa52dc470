import { parseStack as parseWithPackage } from 'error-stack-parser-es/lite'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { leastCpuMs } from '../../../test/support/least-cpu-ms.ts'
import { readStack } from '../read-stack.ts'
import type { StackFrame } from '../stack.ts'

type Frame = Pick<StackFrame, 'function' | 'file' | 'line' | 'column'>

const frame = (name: string, file: string, line: number, column: number): Frame => ({
  function: name,
  file,
  line,
  column,
})

function framesOf(stack: string): Frame[] {
  const { language, links } = readStack(stack)
  const frames = language === 'javascript' ? links.flatMap(link => link.frames) : []
  return frames.map(({ function: name, file, line, column }) => frame(name, file, line, column))
}

describe('a stack', () => {
  it('of Chrome is read frame by frame', () => {
    const stack = `TypeError: Cannot read properties of undefined (reading 'price')
    at o (https://shop.test/assets/index-BxKdLq3f.js:14:2817)
    at async i.checkout (https://shop.test/assets/index-BxKdLq3f.js:14:3102)
    at new Cart (https://shop.test/assets/index-BxKdLq3f.js:1:90)
    at Object.u [as placeOrder] (https://shop.test/assets/index-BxKdLq3f.js:1:523)
    at HTMLButtonElement.<anonymous> (https://shop.test/:41:17)
    at async Promise.all (index 0)
    at Array.map (<anonymous>)
    at https://shop.test/assets/index-BxKdLq3f.js:9:1`
    expect(framesOf(stack)).toEqual([
      frame('o', 'https://shop.test/assets/index-BxKdLq3f.js', 14, 2817),
      frame('i.checkout', 'https://shop.test/assets/index-BxKdLq3f.js', 14, 3102),
      frame('new Cart', 'https://shop.test/assets/index-BxKdLq3f.js', 1, 90),
      frame('Object.u', 'https://shop.test/assets/index-BxKdLq3f.js', 1, 523),
      frame('HTMLButtonElement.<anonymous>', 'https://shop.test/', 41, 17),
      frame('Promise.all', 'index 0', 0, 0),
      frame('Array.map', '<anonymous>', 0, 0),
      frame('', 'https://shop.test/assets/index-BxKdLq3f.js', 9, 1),
    ])
  })

  it('of Node is read: modules by path and by URL, the runtime, and Windows', () => {
    const stack = `Error: at night (all cats are grey)
    at Object.<anonymous> (/srv/app (1)/dist/server.js:3:9)
    at load (file:///srv/app/dist/server.mjs:10:5)
    at Module._compile (node:internal/modules/cjs/loader:1554:14)
    at C:\\app\\dist\\server.js:7:12
    at process.processTicksAndRejections (node:internal/process/task_queues:105:5)
    at native`
    expect(framesOf(stack)).toEqual([
      frame('', '/srv/app (1)/dist/server.js', 3, 9),
      frame('load', 'file:///srv/app/dist/server.mjs', 10, 5),
      frame('Module._compile', 'node:internal/modules/cjs/loader', 1554, 14),
      frame('', 'C:\\app\\dist\\server.js', 7, 12),
      frame('process.processTicksAndRejections', 'node:internal/process/task_queues', 105, 5),
    ])
  })

  it('of Firefox is read: what called in the background, functions within functions, and eval', () => {
    const stack = `lookUp@https://shop.test/assets/index-BxKdLq3f.js:14:2817
async*checkout@https://shop.test/assets/index-BxKdLq3f.js:14:3102
placeOrder/inner<@https://shop.test/assets/@scope/index.js:1:523
setTimeout handler*start@https://shop.test/:41:17
anonymous@https://shop.test/app.js line 26 > eval:2:7
@https://shop.test/app.js:9:1
`
    expect(framesOf(stack)).toEqual([
      frame('lookUp', 'https://shop.test/assets/index-BxKdLq3f.js', 14, 2817),
      frame('checkout', 'https://shop.test/assets/index-BxKdLq3f.js', 14, 3102),
      frame('placeOrder/inner<', 'https://shop.test/assets/@scope/index.js', 1, 523),
      frame('start', 'https://shop.test/', 41, 17),
      frame('anonymous', 'https://shop.test/app.js', 26, 0),
      frame('', 'https://shop.test/app.js', 9, 1),
    ])
  })

  it('of Safari is read: code of modules, native code, and frames without a name', () => {
    const stack = `lookUp@https://shop.test/assets/index-BxKdLq3f.js:14:2817
@https://shop.test/assets/index-BxKdLq3f.js:14:3102
https://shop.test/assets/@scope/index.js:1:52
asyncFunctionResume@[native code]
promiseReactionJobWithoutPromise@[native code]
[native code]
module code@https://shop.test/assets/index-BxKdLq3f.js:1:1
eval code@
global code@https://shop.test/:3:4`
    expect(framesOf(stack)).toEqual([
      frame('lookUp', 'https://shop.test/assets/index-BxKdLq3f.js', 14, 2817),
      frame('', 'https://shop.test/assets/index-BxKdLq3f.js', 14, 3102),
      frame('', 'https://shop.test/assets/@scope/index.js', 1, 52),
      frame('asyncFunctionResume', '[native code]', 0, 0),
      frame('promiseReactionJobWithoutPromise', '[native code]', 0, 0),
      frame('', 'https://shop.test/assets/index-BxKdLq3f.js', 1, 1),
      frame('', 'https://shop.test/', 3, 4),
    ])
  })

  it('names the call of eval for what was evaluated, and keeps parentheses of paths', () => {
    const stack = `Error
    at eval (eval at load (http://shop.test/app.js:10:5), <anonymous>:1:1)
    at a (eval at b (eval at c (http://shop.test/app.js:2:3), <anonymous>:1:1), <anonymous>:4:4)
    at p (https://shop.test/_next/static/chunks/app/(shop)/page-1f.js:1:20)`
    expect(framesOf(stack)).toEqual([
      frame('eval', 'http://shop.test/app.js', 10, 5),
      frame('a', 'http://shop.test/app.js', 2, 3),
      frame('p', 'https://shop.test/_next/static/chunks/app/(shop)/page-1f.js', 1, 20),
    ])
  })

  it('of React Native (Hermes) is read', () => {
    const stack = 'Error: x\n    at f (address at index.android.bundle:1:12345)\n    at g (native)'
    expect(framesOf(stack)).toEqual([frame('f', 'index.android.bundle', 1, 12345), frame('g', 'native', 0, 0)])
  })

  it('of another language has no frames of JavaScript', () => {
    const others = [
      'java.lang.RuntimeException: x\n\tat com.shop.Cart.add(Cart.java:12)\n\t... 3 more',
      'Traceback (most recent call last):\n  File "app/views.py", line 12, in handler',
      'goroutine 1 [running]:\nmain.main()\n\t/srv/app/main.go:12 +0x1d',
      '   at Shop.Cart.Add(Item item) in C:\\src\\Cart.cs:line 12',
    ]
    for (const stack of others) expect(framesOf(stack)).toEqual([])
  })

  it('agrees with error-stack-parser-es on the formats of that package', () => {
    const name = fc.stringMatching(/^[a-zA-Z_$][\w$.]{0,20}$/)
    const file = fc.oneof(
      fc.stringMatching(/^https:\/\/[a-z]{1,9}\.test\/[\w./-]{0,30}\.js$/),
      fc.stringMatching(/^\/[\w/-]{1,30}\.js$/),
    )
    const position = fc.integer({ min: 1, max: 1e6 })
    const frames = fc.array(fc.tuple(name, file, position, position), { minLength: 1, maxLength: 20 })
    const forms: ((parts: [string, string, number, number]) => string)[] = [
      ([f, at, line, column]) => `    at ${f} (${at}:${line}:${column})`,
      ([f, at, line, column]) => `${f}@${at}:${line}:${column}`,
    ]
    fc.assert(
      fc.property(frames, fc.constantFrom(...forms), (parts, form) => {
        const stack = parts.map(form).join('\n')
        const expected = parseWithPackage(stack).map(({ function: f = '', file: at = '', line = 0, col = 0 }) =>
          frame(f, at, line, col),
        )
        expect(framesOf(stack)).toEqual(expected)
      }),
    )
  })

  it('takes time linear in its length for any content, and has at most 100 frames', () => {
    const pieces = ['"x', '(', ')', 'at ', ':1', '@', ' > ', ' line 1', 'eval at f (', '1', '\n', '*', '/']
    for (const piece of [...pieces, '    at f (https://x.test/a.js:1:2)\n', 'f@https://x.test/a.js:1:2\n']) {
      for (const prefix of ['', 'at ', '@']) {
        const stack = prefix + piece.repeat(32_768 / piece.length)
        const parse = () => expect(framesOf(stack).length).toBeLessThanOrEqual(100)
        expect(leastCpuMs(parse, 200)).toBeLessThan(200)
      }
    }
  })
})
