import { expect, it } from 'vitest'
import { outlineStack } from '../../../test/support/outline-stack.ts'

const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'a panic with its backtrace',
    `thread 'main' (17) panicked at src/main.rs:4:5:
boom
1: not::a_frame
stack backtrace:
   0:     0x55b639b3b95a - std[e28293b1aa0f68bd]::panicking::begin
                               at /rustc/59807616/library/std/src/panicking.rs:689:5
   1:     0x55b639b3b95a - <shop::Cart as core::ops::Drop>::drop::h0123456789abcdef
   2: main
note: Some details are omitted`,
    [
      '- panic: boom\n1: not::a_frame',
      'std::panicking::begin /rustc/59807616/library/std/src/panicking.rs:689:5',
      '<shop::Cart as core::ops::Drop>::drop ',
      'main ',
    ],
  ],
  [
    'a panic of old versions',
    `thread '<unnamed>' panicked at 'boom, x', src/main.rs:4:5
stack backtrace:
   0: shop::main
             at ./src/main.rs:4`,
    ['- panic: boom, x', 'shop::main ./src/main.rs:4'],
  ],
  [
    'the place of a panic without a backtrace',
    `thread 'main' panicked at src/main.rs:4:5:
boom
note: run with \`RUST_BACKTRACE=1\` environment variable to display a backtrace`,
    ['- panic: boom', ' src/main.rs:4:5'],
  ],
  [
    'an error of anyhow with causes',
    `Error: failed to load

Caused by:
    0: cannot read: a::b
    1: No such file (os error 2)

Stack backtrace:
   0: shop::load
             at ./src/main.rs:4:9
   1: __libc_start_main`,
    [
      '- : failed to load',
      'shop::load ./src/main.rs:4:9',
      '__libc_start_main ',
      'cause : cannot read: a::b',
      'cause : No such file (os error 2)',
    ],
  ],
  [
    'an error of color-eyre',
    `Error: 
   0: outer
   1: inner: a::b

Location:
   src/main.rs:9

  ━━━━ SPANTRACE ━━━━

   0: shop::span
      at src/main.rs:10

  ━━━━ BACKTRACE ━━━━
                ⋮ 6 frames hidden ⋮
   7: shop::load::h0123456789abcdef
      at /srv/src/main.rs:12
`,
    ['- : outer', 'shop::load /srv/src/main.rs:12', 'cause : inner: a::b'],
  ],
  [
    'frames alone',
    `   0: shop::load
   1: shop::main`,
    ['- : ', 'shop::load ', 'shop::main '],
  ],
]

it.each(CASES)('reads %s', (_, stack, outline) => {
  expect(outlineStack(stack)).toEqual(['rust', ...outline])
})
