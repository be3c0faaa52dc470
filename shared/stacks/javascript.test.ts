import { parseStack as parseWithPackage } from 'error-stack-parser-es/lite'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { leastCpuMs } from '../../test/support/least-cpu-ms.ts'
import { outlineStack } from '../../test/support/outline-stack.ts'
import { readStack } from './read-stack.ts'
import type { StackFrame } from './stack.ts'

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

const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'with causes as util.inspect prints them',
    `HttpError: outer
    at pay (file:///srv/a.mjs:4:9)
    ... 2 lines matching cause stack trace ...
    at async run (node:internal/modules/run_main:117:5) {
  [cause]: TypeError [ERR_INVALID_ARG_TYPE]: mid
      at send (file:///srv/a.mjs:4:38) {
    code: 'X',
    [cause]: Error: inner
    second
        at load (file:///srv/a.mjs:2:26) {
      [cause]: [Error: deep]
    }
  }
}`,
    [
      '- HttpError: outer',
      'pay file:///srv/a.mjs:4:9',
      'run node:internal/modules/run_main:117:5',
      'cause TypeError [ERR_INVALID_ARG_TYPE]: mid',
      'send file:///srv/a.mjs:4:38',
      'cause Error: inner\nsecond',
      'load file:///srv/a.mjs:2:26',
      'cause Error: deep',
    ],
  ],
  [
    'with the members of an AggregateError, and no frame of its own',
    `[AggregateError: All promises were rejected] {
  [errors]: [
    Error: one
    second
        at load (file:///srv/a.mjs:2:26) {
      code: 'X'
    },
    TypeError: two
        at file:///srv/a.mjs:6:37 {
      [cause]: [Error]
    }
  ]
}`,
    [
      '- AggregateError: All promises were rejected',
      'member Error: one\nsecond',
      'load file:///srv/a.mjs:2:26',
      'member TypeError: two',
      ' file:///srv/a.mjs:6:37',
      'cause Error: ',
    ],
  ],
  [
    'with an error that is a property of another one',
    `SequelizeDatabaseError: no table
    at query (/srv/db.js:4:9) {
  sql: 'select 1',
  parent: error: no table
      at read (/srv/pg.js:1:1),
  original: DatabaseError: no table
      at parse (/srv/pg.js:3:2) {
    code: '42P01'
  },
  list: [
    Error: x
        at never (/srv/list.js:3:2)
  ]
}`,
    [
      '- SequelizeDatabaseError: no table',
      'query /srv/db.js:4:9',
      'cause DatabaseError: no table',
      'parse /srv/pg.js:3:2',
    ],
  ],
  [
    'with causes in words',
    'VError: outer: inner\n    at a (/a.js:1:2)\ncaused by: Error: inner\n    at b (/b.js:3:4)',
    ['- VError: outer: inner', 'a /a.js:1:2', 'cause Error: inner', 'b /b.js:3:4'],
  ],
  [
    'below the source line that Node prints',
    '/srv/a.js:3\n    throw new Error("at x (/y.js:1:2)")\n    ^\n\nError: no\n    at a (/srv/a.js:3:9)\n\nNode.js v22.22.1',
    ['- Error: no', 'a /srv/a.js:3:9'],
  ],
  [
    'without lines of the message that look like frames',
    `SyntaxError: bad
at position 12 near anna
at run (/x.js:1:2)
redis://anna@cache-a.test:6379
    at 10:30:15
    at startup (attempt 3:2:1)
    at parse (/app/p.js:1:5)`,
    [
      '- SyntaxError: bad\nat position 12 near anna\nat run (/x.js:1:2)\nredis://anna@cache-a.test:6379\nat 10:30:15\nat startup (attempt 3:2:1)',
      'parse /app/p.js:1:5',
    ],
  ],
  [
    'of Firefox without lines of the message that look like frames',
    `Error: connect ECONNREFUSED redis://anna@cache-a.test:6379
mail anna@shop.test:25:1
get total@https://shop.test/a.js:1:2
@debugger eval code:1:7`,
    [
      '- Error: connect ECONNREFUSED redis://anna@cache-a.test:6379\nmail anna@shop.test:25:1',
      'get total https://shop.test/a.js:1:2',
      ' debugger eval code:1:7',
    ],
  ],
  [
    'of Safari with names alone',
    'load@https://shop.test/a.js:1:2\nforEach\nrun@\n@https://shop.test/a.js:3:4',
    ['- : ', 'load https://shop.test/a.js:1:2', 'forEach ', 'run ', ' https://shop.test/a.js:3:4'],
  ],
  [
    'of Hermes with offsets from 0',
    'TypeError: x\n    at total (address at index.android.bundle:1:0)\n    at anonymous (address at main.jsbundle:1:184)',
    ['- TypeError: x', 'total index.android.bundle:1', 'anonymous main.jsbundle:1:184'],
  ],
  [
    'of WebAssembly',
    'RuntimeError: unreachable\n    at f (wasm://wasm/03e1fd9e:wasm-function[12]:0x4a3)\n    at g (/a.js:1:2)',
    ['- RuntimeError: unreachable', 'f wasm://wasm/03e1fd9e', 'g /a.js:1:2'],
  ],
  ['that was rejected', 'Uncaught (in promise) Error\n    at a (/a.js:1:2)', ['- Error: ', 'a /a.js:1:2']],
  ['without its first line', 'at a (/a.js:1:2)\n    at b (/b.js:1:2)', ['- : ', 'a /a.js:1:2', 'b /b.js:1:2']],
]

const NO_STACKS = [
  'connect ECONNREFUSED redis://anna@cache-a.test:6379',
  'anna@shop.test\nhello',
  'load\nsave',
  'Error: x {\n  at: 1\n}',
  'at position 12 near anna',
  '',
]

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

  it.each(CASES)('%s', (_, stack, outline) => {
    expect(outlineStack(stack)).toEqual(['javascript', ...outline])
  })

  it.each(NO_STACKS)('is not read from %j', text => {
    expect(outlineStack(text)).toEqual(['none'])
  })
})
