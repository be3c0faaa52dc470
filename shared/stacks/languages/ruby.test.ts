import { expect, it } from 'vitest'
import { outlineStack } from '../../../test/support/outline-stack.ts'

const CASES: readonly (readonly [string, string, readonly string[]])[] = [
  [
    'full_message of Ruby 3.4 with a cause',
    `/srv/user.rb:5:in 'User#load': no user (of anna's) (Shop::NotFound)
second line
/srv/fake.rb:1:in 'x'
\tfrom /srv/user.rb:9:in 'block (2 levels) in User.run'
\tfrom <internal:kernel>:187:in 'Kernel#loop'
\tfrom /srv/main.rb:3:in '<main>'
/srv/db.rb:2:in 'Db#read': closed (IOError)
\tfrom /srv/user.rb:4:in 'User#load'`,
    [
      "- Shop::NotFound: no user (of anna's)\nsecond line\n/srv/fake.rb:1:in 'x'",
      'User#load /srv/user.rb:5',
      'block (2 levels) in User.run /srv/user.rb:9',
      'Kernel#loop <internal:kernel>:187',
      '<main> /srv/main.rb:3',
      'cause IOError: closed',
      'Db#read /srv/db.rb:2',
      'User#load /srv/user.rb:4',
    ],
  ],
  [
    'full_message of Ruby 3.3, with hints below the message',
    `a.rb:1:in \`load': undefined method \`x' for nil (NoMethodError)

    nil.x
       ^^
\tfrom -e:3:in \`<main>'
b.rb:7:in \`open': ArgumentError (ArgumentError)`,
    [
      "- NoMethodError: undefined method `x' for nil\n\n    nil.x\n       ^^",
      'load a.rb:1',
      '<main> -e:3',
      'cause ArgumentError: ArgumentError',
      'open b.rb:7',
    ],
  ],
  [
    'full_message with the innermost frame last',
    `Traceback (most recent call last):
\t1: from /srv/main.rb:3:in \`<main>'
/srv/db.rb:2:in \`read': closed (IOError)
\t 2: from /srv/main.rb:3:in \`<main>'
\t 1: from /srv/user.rb:9:in \`run'
/srv/user.rb:5:in \`load': no user (Shop::NotFound)`,
    [
      '- Shop::NotFound: no user',
      'load /srv/user.rb:5',
      'run /srv/user.rb:9',
      '<main> /srv/main.rb:3',
      'cause IOError: closed',
      'read /srv/db.rb:2',
      '<main> /srv/main.rb:3',
    ],
  ],
  [
    'the lines of a backtrace',
    "NoMethodError: undefined method 'x' for nil\n/srv/a.rb:12:in 'Cart#total'\n(eval at /srv/b.rb:3):1:in 'run'",
    ["- NoMethodError: undefined method 'x' for nil", 'Cart#total /srv/a.rb:12', 'run (eval at /srv/b.rb:3):1'],
  ],
  [
    'frames without callers or lines',
    "a.rb:22:in '<main>': it's (odd) (RuntimeError)\nb.rb:22:in '<main>': unhandled exception\n\tfrom -e:in 'Kernel.eval'",
    ["- RuntimeError: it's (odd)\nb.rb:22:in '<main>': unhandled exception", '<main> a.rb:22', 'Kernel.eval -e'],
  ],
  [
    'one line',
    "E\n/usr/lib/ruby/gems/3.2.0/gems/rack-2.2.7/lib/rack/builder.rb:12:in `call'",
    ['- E: ', 'call /usr/lib/ruby/gems/3.2.0/gems/rack-2.2.7/lib/rack/builder.rb:12'],
  ],
]

it.each(CASES)('reads %s', (_, stack, outline) => {
  expect(outlineStack(stack)).toEqual(['ruby', ...outline])
})

it('reads nothing from a message', () => {
  expect(outlineStack("the value 3:in 'x' is wrong")).toEqual(['none'])
  expect(outlineStack("see a.rb:3:in 'x' there")).toEqual(['none'])
})
