import { describe, expect, it } from 'vitest'
import { outlineStack } from '../../../test/support/outline-stack.ts'

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
    'with an AggregateError in another one',
    `AggregateError: all
    at a (/a.js:1:2) {
  [errors]: [
    AggregateError: inner
        at b (/b.js:1:2) {
      [errors]: [
        Error: one
            at c (/c.js:1:2)
      ]
    },
    Error: two
        at d (/d.js:1:2)
  ]
}`,
    [
      ...['- AggregateError: all', 'a /a.js:1:2', 'member AggregateError: inner', 'b /b.js:1:2'],
      ...['member Error: one', 'c /c.js:1:2', 'member Error: two', 'd /d.js:1:2'],
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
anna@shop.test:25:1
TypeError
get total@https://shop.test/a.js:1:2
@debugger eval code:1:7`,
    [
      '- Error: connect ECONNREFUSED redis://anna@cache-a.test:6379\nmail anna@shop.test:25:1\nanna@shop.test:25:1\nTypeError',
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
  'Error: x\n    at shop.Cart.add(/srv/cart:1:2)',
  'Error: x {\n  at: 1\n}',
  'at position 12 near anna',
  '',
]

describe('a stack of JavaScript', () => {
  it.each(CASES)('%s', (_, stack, outline) => {
    expect(outlineStack(stack)).toEqual(['javascript', ...outline])
  })

  it.each(NO_STACKS)('is not read from %j', text => {
    expect(outlineStack(text)).toEqual(['none'])
  })
})
