import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { leastCpuMs } from '../../test/support/least-cpu-ms.ts'
import { outlineStack } from '../../test/support/outline-stack.ts'
import { linesOf } from './lines.ts'
import { readStack } from './read-stack.ts'

/** Parts of stacks of all languages, which any text is made of. */
const PIECES = [
  ...[
    'Error: x',
    '    at f (https://x.test/a.js:1:2)',
    'f@https://x.test/a.js:1:2',
    '  [cause]: Error: y {',
    '  [errors]: [',
  ],
  ...[
    'Traceback (most recent call last):',
    '  File "/a.py", line 1, in f',
    '  + Exception Group Traceback (',
    '  | E: x',
  ],
  ...[
    '  +-+---------------- 1 ----------------',
    "a.rb:1:in 'f': x (E)",
    "\tfrom a.rb:1:in 'f'",
    "\t1: from a.rb:1:in 'f'",
  ],
  ...['#0 /a.php(1): f()', '#1 {main}', 'Stack trace:', 'Next E: x in /a.php:1', 'Caused by: E: x', ' at f(a.php:1)'],
  ...['goroutine 1 [running]:', 'panic: x', 'a.f(0x1)', '\t/a.go:1 +0x1', 'created by a.f in goroutine 1', 'panic()'],
  ...[
    'java.lang.E: x',
    '\tat a.B.c(B.java:1)',
    '\tSuppressed: a.E: x',
    'Wrapped by: a.E: x',
    '\t... 1 more',
    ' ~[a.jar:1]',
  ],
  ...['   at A.B.C(D e) in /a.cs:line 1', ' ---> A.E: x', '   --- End of inner exception stack trace ---', '<---'],
  ...["thread 'main' panicked at a.rs:1:2:", 'stack backtrace:', '   0: a::b', '             at a.rs:1:2', '0x1 - '],
  ...[
    '        ',
    '\n',
    '(',
    ')',
    ':1',
    '@',
    '"',
    "'",
    '+-+- 1 -',
    '|',
    '    ',
    'eval at f (',
    ' line 1 > eval',
    ': ',
    ' in ',
    '{',
    '🙂',
  ],
]

/** Stacks with a place for the message. */
const WITH_MESSAGE: readonly ((message: string) => string)[] = [
  message => `Error: x\n${message}\n    at f (/srv/a.js:1:2)\n    at async g (/srv/b.js:3:4)`,
  message =>
    `Traceback (most recent call last):\n  File "/a.py", line 1, in f\n    g()\n  File "/b.py", line 3, in g\nE: x\n${message}`,
  message => `/a.rb:1:in 'f': x (E)\n${message}\n\tfrom /b.rb:3:in 'g'`,
  message => `panic: x\n${message}\n\ngoroutine 1 [running]:\nmain.f()\n\t/a.go:1 +0x1`,
  message => `a.b.E: x\n${message}\n\tat a.B.c(B.java:1)\nCaused by: a.F: y\n\tat a.B.d(B.java:1)\n\t... 1 more`,
  message =>
    `A.E: x\n${message}\n ---> A.F: y\n   at A.B.C()\n   --- End of inner exception stack trace ---\n   at A.B.D()`,
  message =>
    `thread 'main' panicked at a.rs:1:2:\nx\n${message}\nstack backtrace:\n   0: a::b\n             at a.rs:1:2`,
  message => `E: x\n${message} in /a.php:1\nStack trace:\n#0 /b.php(3): f()\n#1 {main}`,
]

describe('any text', () => {
  it.each(WITH_MESSAGE)('adds no frame as a part of a message (%#)', withMessage => {
    const words = [
      'at f (/srv/m.js:1:2)',
      'f@https://x.test/m.js:1:2',
      'https://anna@x.test/m.js:1:2',
      'redis://anna@m:1',
      'at 17',
    ]
    const more = [
      'File "/m.py", line 1, in f',
      '  File "/m.py", line 2, in f',
      "m.rb:1:in 'f'",
      '#x',
      'Stack trace: no',
      '{',
      '[',
      '}',
    ]
    const message = fc.array(fc.oneof(fc.constantFrom(...words, ...more), fc.stringMatching(/^[a-z@:/ 0-9]{0,20}$/)), {
      maxLength: 20,
    })
    const frames = ({ links }: ReturnType<typeof readStack>) => links.map(({ frames: own }) => own)
    fc.assert(
      fc.property(message, lines => {
        expect(frames(readStack(withMessage(lines.join('\n'))))).toEqual(frames(readStack(withMessage('y'))))
      }),
    )
  })

  it('is read within the bounds', () => {
    const line = fc
      .array(fc.oneof(fc.constantFrom(...PIECES), fc.string({ maxLength: 8 })), { maxLength: 6 })
      .map(all => all.join(''))
    const text = fc.array(fc.oneof(fc.constantFrom(...PIECES), line), { maxLength: 300 }).map(all => all.join('\n'))
    fc.assert(
      fc.property(text, stack => {
        const { language, links } = readStack(stack)
        expect(links.length).toBeLessThanOrEqual(16)
        expect(language === undefined).toBe(links.length === 0)
        for (const { frames, message } of links) {
          expect(frames.length).toBeLessThanOrEqual(100)
          expect(message.length).toBeLessThanOrEqual(1_024)
          for (const { text: own } of frames) expect(stack).toContain(own.split('\n', 1)[0])
        }
      }),
    )
  })

  it('is read in linear time', () => {
    for (const piece of [...PIECES, ...PIECES.map(each => `${each}\n`)]) {
      for (const prefix of [
        '',
        'at ',
        '  File "/a.py", line 1, in f\n',
        "a.rb:1:in '",
        '#0 ',
        'a.E: x\n\tat a.B.c(B.java:1)\n',
        'A.E: x\n   at A.B.C()\n',
        '\tat a.',
        '   at A.B.C(',
        'goroutine 1 [running]:\n',
        'stack backtrace:\n',
        '  + Exception Group Traceback (\n',
      ]) {
        const stack = prefix + piece.repeat(32_768 / piece.length)
        expect(leastCpuMs(() => readStack(stack), 200)).toBeLessThan(200)
      }
    }
  })
})

const PYTHON = 'Traceback (most recent call last):\n  File "/a.py", line 1, in f\nE: x'

it.each([
  ['javascript', `Error: Command failed: a.py\n${PYTHON}\n    at run (node:child_process:1:2)`],
  ['python', `${PYTHON}: node failed\n    at run (/srv/a.js:1:2)`],
  [
    'python',
    `  + Exception Group Traceback (most recent call last):\n  |   File "/a.py", line 1, in f\n  | E: x\n    at run (/srv/a.js:1:2)`,
  ],
  ['ruby', `/srv/a.rb:1:in 'run': ${PYTHON}\n\tfrom /srv/a.rb:2:in '<main>'`],
])('of two languages is a stack of %s, whose message quotes the other one', (language, stack) => {
  expect(outlineStack(stack)[0]).toBe(language)
})

it('has at most 16 exceptions, and of each the 100 innermost frames', () => {
  const frames = Array.from({ length: 120 }, (_, i) => `    at f${i} (/a.js:1:2)`).join('\n')
  const { links } = readStack(`Error: 0\n${frames}${'\ncaused by: Error: x\n    at g (/b.js:1:2)'.repeat(20)}`)
  expect(links.length).toBe(16)
  expect(links[0]?.frames.map(frame => frame.function)).toEqual(Array.from({ length: 100 }, (_, i) => `f${i}`))
})

it('loses the middle of its lines, and the end of long ones', () => {
  const lines = linesOf(Array.from({ length: 5_000 }, (_, i) => `${i}`).join('\n'))
  expect(lines).toEqual([...Array(1_000).keys(), ...Array.from({ length: 1_000 }, (_, i) => 4_000 + i)].map(String))
  expect(linesOf(`${'x'.repeat(2_000)}\r\n\n y \r\n`)).toEqual(['x'.repeat(1_024), '', ' y'])
})
