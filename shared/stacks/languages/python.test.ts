import { expect, it } from 'vitest'
import { outlineStack } from '../../../test/support/outline-stack.ts'

const CAUSE = 'The above exception was the direct cause of the following exception:'
const CONTEXT = 'During handling of the above exception, another exception occurred:'

const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'a chain, and neither carets, source lines nor lines of the message',
    `Traceback (most recent call last):
  File "/srv/shop.py", line 4, in two
    try: inner()
         ^^^^^^^
  File "/srv/shop.py", line 2, in inner
    File "x.py", line 3, in fake
ValueError: one

${CAUSE}

Traceback (most recent call last):
  File "/srv/shop.py", line 5, in two
    raise KeyError('two') from e
KeyError: 'two'

${CONTEXT}

Traceback (most recent call last):
  File "/srv/main.py", line 10, in <module>
    run()
TypeError: three
line two
  File "x.py", line 3, in fake
`,
    [
      '- TypeError: three\nline two\n  File "x.py", line 3, in fake',
      '<module> /srv/main.py:10',
      "context KeyError: 'two'",
      'two /srv/shop.py:5',
      'cause ValueError: one',
      'inner /srv/shop.py:2',
      'two /srv/shop.py:4',
    ],
  ],
  [
    'a syntax error and recursion',
    `Traceback (most recent call last):
  File "/srv/shop.py", line 13, in run
  File "/srv/shop.py", line 15, in rec
    def rec(): rec()
  [Previous line repeated 995 more times]
  File "<string>", line 1
    x = = 1
        ^
SyntaxError: invalid syntax`,
    ['- SyntaxError: invalid syntax', ' <string>:1', 'rec /srv/shop.py:15', 'run /srv/shop.py:13'],
  ],
  [
    'groups in groups, with chains',
    `Traceback (most recent call last):
  File "/srv/shop.py", line 1, in first
ValueError: first

${CAUSE}

  + Exception Group Traceback (most recent call last):
  |   File "/srv/shop.py", line 23, in grp
  |     raise ExceptionGroup('many', errs)
  | ExceptionGroup: many (2 sub-exceptions)
  | a note
  +-+---------------- 1 ----------------
    | Traceback (most recent call last):
    |   File "/srv/shop.py", line 2, in inner
    |     raise ValueError('one')
    | ValueError: one
    |${' '}
    | ${CAUSE}
    |${' '}
    | Traceback (most recent call last):
    |   File "/srv/shop.py", line 5, in two
    | KeyError: 'two'
    +---------------- 2 ----------------
    | ExceptionGroup: nested (1 sub-exception)
    +-+---------------- 1 ----------------
      | PermissionError: [Errno 1] x
      +------------------------------------

${CONTEXT}

Traceback (most recent call last):
  File "/srv/main.py", line 27, in over
RuntimeError: over`,
    [
      '- RuntimeError: over',
      'over /srv/main.py:27',
      'context ExceptionGroup: many (2 sub-exceptions)\na note',
      'grp /srv/shop.py:23',
      "member KeyError: 'two'",
      'two /srv/shop.py:5',
      'cause ValueError: one',
      'inner /srv/shop.py:2',
      'member ExceptionGroup: nested (1 sub-exception)',
      'member PermissionError: [Errno 1] x',
      'cause ValueError: first',
      'first /srv/shop.py:1',
    ],
  ],
  [
    'a traceback of another process',
    `concurrent.futures.process._RemoteTraceback:${' '}
"""
Traceback (most recent call last):
  File "/srv/work.py", line 261, in divide
ZeroDivisionError: division by zero
"""

${CAUSE}

Traceback (most recent call last):
  File "/srv/main.py", line 37, in pool
__main__.A.<locals>.MyErr`,
    [
      '- __main__.A.<locals>.MyErr: ',
      'pool /srv/main.py:37',
      'cause ZeroDivisionError: division by zero',
      'divide /srv/work.py:261',
    ],
  ],
  [
    'frames without a heading',
    'File "/srv/a.py", line 1, in f\n    g()\n  File "/srv/b.py", line 2, in g\n    raise E\nE',
    ['- E: ', 'g /srv/b.py:2', 'f /srv/a.py:1'],
  ],
  [
    'a text whose middle was cut',
    'Traceback (most recent call last):\n  File "/srv/a.py", line 1, in f\n\n[… 1,234 characters …]\ng()\n  File "/srv/b.py", line 2, in g\nE',
    ['- E: ', 'g /srv/b.py:2', 'f /srv/a.py:1'],
  ],
  [
    'an indented text',
    '    Traceback (most recent call last):\n      File "/srv/a.py", line 1, in f\n        g()\n    E: x',
    ['- E: x', 'f /srv/a.py:1'],
  ],
]

it.each(CASES)('reads %s', (_, stack, outline) => {
  expect(outlineStack(stack)).toEqual(['python', ...outline])
})

it('reads nothing without a frame', () => {
  expect(outlineStack('no File "x", line 1, in f')).toEqual(['none'])
  expect(outlineStack('Traceback (most recent call last):\nE: x')).toEqual(['none'])
})
